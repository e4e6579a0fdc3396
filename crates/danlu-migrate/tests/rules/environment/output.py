import os

os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0,1"
os.environ.setdefault('ASCEND_LAUNCH_BLOCKING', "1")
visible = os.getenv("ASCEND_RT_VISIBLE_DEVICES", "").split(",")
env = dict(os.environ, PYTORCH_NPU_ALLOC_CONF="expandable_segments:True")
env["PYTORCH_NPU_ALLOC_CONF"] = "expandable_segments:True"
os.environ["HCCL_SOCKET_IFNAME"] = "eth0"
os.environ["NCCL_DEBUG"] = "INFO"
os.environ["TORCH_CUDA_ARCH_LIST"] = "8.0"
print("set CUDA_VISIBLE_DEVICES first")
os.system("ASCEND_RT_VISIBLE_DEVICES=0 python train.py --name CUDA_VISIBLE_DEVICES")
os.environ["MV2_USE_CUDA"] = "1"
