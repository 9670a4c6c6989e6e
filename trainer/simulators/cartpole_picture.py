"""A picture of cart and pole, in numpy: a task that needs no simulator needs no renderer either."""

import math

import numpy as np

HEIGHT, WIDTH = 320, 640
PIXELS_PER_M = 120
RAIL_Y = 230
CART_HALF = (30, 16)
RAIL_HALF_PX = 1.5
POLE_HALF_PX = 5.0
AXLE_RADIUS_PX = 6.0

SKY = (245, 246, 248)
RAIL = (90, 96, 105)
CART = (36, 41, 47)
POLE = (202, 110, 45)
AXLE = (240, 240, 240)


def draw(*, position_m: float, angle_rad: float, pole_length_m: float) -> np.ndarray:
    """uint8, shape (HEIGHT, WIDTH, 3); the pole leans right for a positive angle."""
    picture = np.full((HEIGHT, WIDTH, 3), SKY, dtype=np.uint8)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    axle = (WIDTH / 2 + position_m * PIXELS_PER_M, float(RAIL_Y - CART_HALF[1]))
    length = pole_length_m * PIXELS_PER_M
    tip = (axle[0] + length * math.sin(angle_rad), axle[1] - length * math.cos(angle_rad))
    picture[abs(y - RAIL_Y) <= RAIL_HALF_PX] = RAIL
    picture[(abs(x - axle[0]) <= CART_HALF[0]) & (abs(y - RAIL_Y) <= CART_HALF[1])] = CART
    picture[_distance(x, y, axle, tip) <= POLE_HALF_PX] = POLE
    picture[np.hypot(x - axle[0], y - axle[1]) <= AXLE_RADIUS_PX] = AXLE
    return picture


def _distance(
    x: np.ndarray, y: np.ndarray, start: tuple[float, float], end: tuple[float, float]
) -> np.ndarray:
    """Of each pixel to the line between two points."""
    along = (end[0] - start[0], end[1] - start[1])
    share = ((x - start[0]) * along[0] + (y - start[1]) * along[1]) / (along[0] ** 2 + along[1] ** 2)
    share = np.clip(share, 0, 1)
    distance: np.ndarray = np.hypot(x - start[0] - share * along[0], y - start[1] - share * along[1])
    return distance
