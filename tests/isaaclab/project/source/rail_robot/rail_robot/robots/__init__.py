"""The rail robot: a cart on a rail with a pole on the cart."""

from pathlib import Path

import isaaclab.sim as sim_utils
from isaaclab.actuators import ImplicitActuatorCfg
from isaaclab.assets import ArticulationCfg

RAIL_ROBOT_CFG = ArticulationCfg(
    spawn=sim_utils.UsdFileCfg(usd_path=str(Path(__file__).parent / "rail_robot.usda")),
    init_state=ArticulationCfg.InitialStateCfg(
        pos=(0.0, 0.0, 1.5), joint_pos={"rail_to_cart": 0.0, "cart_to_mast": 0.0}
    ),
    actuators={
        "cart": ImplicitActuatorCfg(joint_names_expr=["rail_to_cart"], stiffness=0.0, damping=5.0),
        "mast": ImplicitActuatorCfg(joint_names_expr=["cart_to_mast"], stiffness=0.0, damping=0.0),
    },
)
