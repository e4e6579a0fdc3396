"""Trains a small network on handwritten digits, data-parallel over all ranks of the job, with JAX on CPU.

Every rank holds the whole model and its share of each batch. The loss is the mean over the *global* batch, which is
sharded over a mesh of all ranks, so the compiler puts an all-reduce (gloo) where the gradients meet. The same global
batch gives the same training for any number of ranks; examples/check.py holds it to that.

Started by hand, without a platform around it, it trains alone: `python train.py`.
"""

import argparse
import os
import sys
import time

# Before the imports that read them: with several ranks on few cores, each one's thread pool only disturbs the others.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from sklearn.datasets import load_digits

from events import EventWriter

TEST_SAMPLES = 297
HIDDEN = 128
MOMENTUM = 0.9
CHECKPOINT = "checkpoint.npz"


def main():
    options = parse_options()
    rank, ranks = join_the_others()
    if options.batch % ranks:
        sys.exit(f"error: the batch of {options.batch} cannot be shared equally by {ranks} ranks")

    mesh = Mesh(np.array(jax.devices()), ("ranks",))
    everywhere = NamedSharding(mesh, PartitionSpec())
    shared_out = NamedSharding(mesh, PartitionSpec("ranks"))

    train_images, train_labels, test_images, test_labels = digits()
    first_epoch, state = start_state(rank, options.seed)
    state = jax.device_put(state, everywhere)
    step = jax.jit(train_step, out_shardings=(everywhere, everywhere), donate_argnums=0)
    writer = EventWriter(os.environ.get("DANLU_OUTPUT_DIR", "./runs")) if rank == 0 else None

    share = options.batch // ranks
    mine = slice(rank * share, (rank + 1) * share)
    began = time.monotonic()
    accuracy = evaluate(state, test_images, test_labels)
    for epoch in range(first_epoch, options.epochs):
        # The order depends on the epoch alone: every rank, and every attempt that resumes, draws the same one.
        order = np.random.default_rng([options.seed, epoch]).permutation(len(train_images))
        losses = []
        for start in range(0, len(order) - options.batch + 1, options.batch):
            picked = order[start : start + options.batch][mine]
            images = jax.make_array_from_process_local_data(shared_out, train_images[picked])
            labels = jax.make_array_from_process_local_data(shared_out, train_labels[picked])
            state, loss = step(state, images, labels, options.rate)
            losses.append(loss)
        loss = float(np.mean([float(one) for one in losses]))
        accuracy = evaluate(state, test_images, test_labels)
        if rank == 0:
            report(epoch, options.epochs, loss, accuracy, writer)
            save(state, epoch + 1)

    if rank == 0:
        writer.close()
        print(f"trained on {ranks} rank{'s' * (ranks > 1)} in {time.monotonic() - began:.1f} s; TensorBoard file {writer.path}")
        print(f"final accuracy {accuracy:.3f}", flush=True)
    jax.distributed.shutdown()
    if accuracy < options.expect:
        sys.exit(f"error: accuracy {accuracy:.3f} is below {options.expect}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--batch", type=int, default=300, help="samples in a step, over all ranks")
    parser.add_argument("--rate", type=float, default=0.2, help="learning rate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--expect", type=float, default=0.9, help="fail when the final accuracy is below this")
    return parser.parse_args()


def join_the_others():
    """Meets the other ranks where the environment says, as torchrun counts them: one number per process."""
    rank = int(os.environ.get("RANK", "0"))
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        meeting_place = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        jax.distributed.initialize(meeting_place, num_processes=ranks, process_id=rank)
    print(f"rank {rank} of {ranks} is here with {jax.local_device_count()} device", flush=True)
    return rank, ranks


def digits():
    data = load_digits()
    order = np.random.default_rng(42).permutation(len(data.images))
    images = (data.images.reshape(len(data.images), -1) / 16.0).astype(np.float32)[order]
    labels = data.target.astype(np.int32)[order]
    return images[:-TEST_SAMPLES], labels[:-TEST_SAMPLES], images[-TEST_SAMPLES:], labels[-TEST_SAMPLES:]


def start_state(rank, seed):
    """A fresh network, or the one an earlier attempt left. Rank 0 reads and all others get its copy."""
    random = np.random.default_rng(seed)
    weights = {
        "w1": (random.standard_normal((64, HIDDEN)) * np.sqrt(2 / 64)).astype(np.float32),
        "b1": np.zeros(HIDDEN, np.float32),
        "w2": (random.standard_normal((HIDDEN, 10)) * np.sqrt(1 / HIDDEN)).astype(np.float32),
        "b2": np.zeros(10, np.float32),
    }
    state = {"weights": weights, "speed": {name: np.zeros_like(array) for name, array in weights.items()}}
    epoch = np.int32(0)
    resume = os.path.join(os.environ.get("DANLU_RESUME_DIR", ""), CHECKPOINT)
    if rank == 0 and os.environ.get("DANLU_RESUME_DIR") and os.path.exists(resume):
        with np.load(resume) as saved:
            epoch = saved["epoch"]
            state = {part: {name: saved[f"{part}.{name}"] for name in weights} for part in state}
        print(f"resuming after epoch {int(epoch)} from {resume}", flush=True)
    if jax.process_count() > 1:
        epoch, state = multihost_utils.broadcast_one_to_all((epoch, state))
    return int(epoch), jax.tree.map(np.asarray, state)


def logits(weights, images):
    hidden = jax.nn.relu(images @ weights["w1"] + weights["b1"])
    return hidden @ weights["w2"] + weights["b2"]


def mean_loss(weights, images, labels):
    chances = jax.nn.log_softmax(logits(weights, images))
    return -jnp.mean(jnp.take_along_axis(chances, labels[:, None], axis=1))


def train_step(state, images, labels, rate):
    loss, gradients = jax.value_and_grad(mean_loss)(state["weights"], images, labels)
    speed = jax.tree.map(lambda v, g: MOMENTUM * v + g, state["speed"], gradients)
    weights = jax.tree.map(lambda w, v: w - rate * v, state["weights"], speed)
    return {"weights": weights, "speed": speed}, loss


def evaluate(state, images, labels):
    """Every rank has the whole model, so each can judge it alone."""
    weights = {name: np.asarray(array.addressable_data(0)) for name, array in state["weights"].items()}
    hidden = np.maximum(images @ weights["w1"] + weights["b1"], 0)
    return float(np.mean(np.argmax(hidden @ weights["w2"] + weights["b2"], axis=1) == labels))


def report(epoch, epochs, loss, accuracy, writer):
    writer.scalars(epoch + 1, loss=loss, accuracy=accuracy)
    print(f"epoch {epoch + 1:3d} of {epochs}: loss {loss:.6f}, accuracy {accuracy:.3f}")
    print(f"::danlu progress {(epoch + 1) / epochs:.3f}")
    print(f"::danlu metric loss={loss:.6f} accuracy={accuracy:.4f}", flush=True)


def save(state, epoch):
    folder = os.environ.get("DANLU_CHECKPOINT_DIR")
    if not folder:
        return
    os.makedirs(folder, exist_ok=True)
    arrays = {
        f"{part}.{name}": np.asarray(array.addressable_data(0))
        for part, group in state.items()
        for name, array in group.items()
    }
    unfinished = os.path.join(folder, f".{CHECKPOINT}.tmp")
    with open(unfinished, "wb") as file:
        np.savez(file, epoch=np.int32(epoch), **arrays)
    os.replace(unfinished, os.path.join(folder, CHECKPOINT))  # A kill at any moment leaves the old one or the new one.
    print(f"::danlu checkpoint step={epoch}", flush=True)


if __name__ == "__main__":
    main()
