"""Where folders of the original program lie on ModelArts: folders that the job mounts, or `obs://bucket/path/`.

The folders that ModelArts makes for the inputs and outputs of a job are named after its parameters.
"""
import os

_DATA = os.environ.get("DATA_URL", "/home/ma-user/modelarts/inputs/data_url_0")
_TRAIN = os.environ.get("TRAIN_URL", "/home/ma-user/modelarts/outputs/train_url_0")

INPUT = {
    "data": _DATA,
    "./data": _DATA,
}
OUTPUT = {
    "output": _TRAIN,
    "./output": _TRAIN,
}
