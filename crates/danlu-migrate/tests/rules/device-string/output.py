import argparse
import os

import torch
import torch_npu  # noqa: F401

device = "npu"
DEVICE = 'npu:0'
dev = f"npu"
first = f"npu:{0}"
second = "npu:%d" % 1
third = "npu:{}".format(2)
fourth = "npu:" + str(3)
fifth = r"cuda"
raw = b"cuda"
where = "npu" if torch.npu.is_available() else "cpu"
torch.ones(1).to(where)
state = torch.load("a.pt", map_location="npu")
state = torch.load("a.pt", map_location={"npu:0": "npu:1"})
state = torch.load("a.pt", "npu:0")
with torch.autocast("npu", dtype=torch.float16), torch.autocast(device_type="npu"):
    pass
scaler = torch.amp.GradScaler("npu")
torch.set_default_device("npu")
generator = torch.Generator(device="npu").manual_seed(1)

parser = argparse.ArgumentParser(description="trains with cuda")
parser.add_argument("--device", default="npu", choices=["cpu", "npu"], help="cuda or cpu")
parser.add_argument("--place", default="npu:0")
parser.add_argument("--cuda", action="store_true")
parser.add_argument("--target", default="npu")
args = parser.parse_args()
torch.ones(1, device=args.target)

config = {"device": "npu", "name": "cuda", "where": "npu"}
torch.ones(1).to(config["where"])
path = os.path.join("csrc", "cuda", "kernel.cu")
folder = "build/cuda:0/logs"
print("using cuda", f"running on cuda:{0}", "cuda")
if device == "npu" or torch.device(device).type == "npu" or device.startswith("npu"):
    pass
if "npu" in str(device) or "cuda" in os.environ["PATH"] or "cuda" not in torch.__version__:
    pass
table = {"cpu": 1, "npu": 2}[device]
kept = {"cpu": 1, "cuda": 2}
for place in ("cpu", "npu"):
    pass
if hasattr(torch, "npu") and getattr(args, "cuda", False):
    pass
unclear = something("cuda")
extra = {"extras": ["cuda"]}


def train(model, device="npu", backend="cuda"):
    return model.to(device)


def run(spot):
    return torch.ones(1).to(spot)


run("npu")
run(spot="npu")


def pick_device():
    return "npu"


class Kind:
    CUDA = "cuda"

CALCULATE_DEVICE = "npu:0"
torch.npu.set_device(CALCULATE_DEVICE)
DEFAULTS = {"default": "$torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')"}


@pytest.mark.parametrize("device_from, device_to", [("cpu", "npu"), ("npu", "cpu"), ("npu", "npu"), (None, None)])
def test_pairs(device_from, device_to):
    if "npu" in (device_from, device_to) and not torch.npu.is_available():
        pytest.skip()


class TestMoves(unittest.TestCase):
    def test_moves(self):
        x = torch.ones(3).npu()
        self.assertEqual(x.device.type, "npu")
        self.assertIn("npu", str(x.device))
        self.assertEqual(x.name, "cuda")


def total_time(event, is_new):
    device_name = "device" if is_new else "cuda"
    return getattr(event, f"{device_name}_time_total")
