import argparse
import os

import torch

device = "cuda"
DEVICE = 'cuda:0'
dev = f"cuda"
first = f"cuda:{0}"
second = "cuda:%d" % 1
third = "cuda:{}".format(2)
fourth = "cuda:" + str(3)
fifth = r"cuda"
raw = b"cuda"
where = "cuda" if torch.cuda.is_available() else "cpu"
torch.ones(1).to(where)
state = torch.load("a.pt", map_location="cuda")
state = torch.load("a.pt", map_location={"cuda:0": "cuda:1"})
state = torch.load("a.pt", "cuda:0")
with torch.autocast("cuda", dtype=torch.float16), torch.autocast(device_type="cuda"):
    pass
scaler = torch.amp.GradScaler("cuda")
torch.set_default_device("cuda")
generator = torch.Generator(device="cuda").manual_seed(1)

parser = argparse.ArgumentParser(description="trains with cuda")
parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"], help="cuda or cpu")
parser.add_argument("--place", default="cuda:0")
parser.add_argument("--cuda", action="store_true")
parser.add_argument("--target", default="cuda")
args = parser.parse_args()
torch.ones(1, device=args.target)

config = {"device": "cuda", "name": "cuda", "where": "cuda"}
torch.ones(1).to(config["where"])
path = os.path.join("csrc", "cuda", "kernel.cu")
folder = "build/cuda:0/logs"
print("using cuda", f"running on cuda:{0}", "cuda")
if device == "cuda" or torch.device(device).type == "cuda" or device.startswith("cuda"):
    pass
if "cuda" in str(device) or "cuda" in os.environ["PATH"] or "cuda" not in torch.__version__:
    pass
table = {"cpu": 1, "cuda": 2}[device]
kept = {"cpu": 1, "cuda": 2}
for place in ("cpu", "cuda"):
    pass
if hasattr(torch, "cuda") and getattr(args, "cuda", False):
    pass
unclear = something("cuda")
extra = {"extras": ["cuda"]}


def train(model, device="cuda", backend="cuda"):
    return model.to(device)


def run(spot):
    return torch.ones(1).to(spot)


run("cuda")
run(spot="cuda")


def pick_device():
    return "cuda"


class Kind:
    CUDA = "cuda"

CALCULATE_DEVICE = "gpu:0"
torch.cuda.set_device(CALCULATE_DEVICE)
DEFAULTS = {"default": "$torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')"}


@pytest.mark.parametrize("device_from, device_to", [("cpu", "cuda"), ("cuda", "cpu"), ("cuda", "cuda"), (None, None)])
def test_pairs(device_from, device_to):
    if "cuda" in (device_from, device_to) and not torch.cuda.is_available():
        pytest.skip()


class TestMoves(unittest.TestCase):
    def test_moves(self):
        x = torch.ones(3).cuda()
        self.assertEqual(x.device.type, "cuda")
        self.assertIn("cuda", str(x.device))
        self.assertEqual(x.name, "cuda")


def total_time(event, is_new):
    device_name = "device" if is_new else "cuda"
    return getattr(event, f"{device_name}_time_total")
