"""Trains a classifier with PyTorch, data-parallel over all ranks of the job with the gloo backend.

Every rank holds the model and its share of each batch; gradients are averaged by `all_reduce`. The order of samples
depends on the epoch alone, so any number of ranks, and any attempt that resumes, ends with the same weights.
`danlu` is on the PYTHONPATH of every rank.
"""

import argparse
import os
import sys

import danlu
import torch
import torch.distributed as dist

SAMPLES, PIXELS, CLASSES = 1200, 64, 10
CHECKPOINT = "checkpoint.pt"


def main():
    options = parse_options()
    rank, ranks = danlu.rank(), danlu.world_size()
    if options.batch % ranks:
        sys.exit(f"error: the batch of {options.batch} cannot be shared equally by {ranks} ranks")
    if ranks > 1:
        dist.init_process_group("gloo")
    torch.set_num_threads(1)

    pictures, digits = draw_digits(SAMPLES, seed=42)
    tests, answers = draw_digits(SAMPLES // 4, seed=43)
    torch.manual_seed(options.seed)
    # Double precision, so that sums in another order differ in the last digits only.
    model = torch.nn.Sequential(torch.nn.Linear(PIXELS, 32), torch.nn.Tanh(), torch.nn.Linear(32, CLASSES)).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=options.rate, momentum=0.9)
    first_epoch = resume(model, optimizer)
    share = options.batch // ranks
    for epoch in range(first_epoch, options.epochs):
        order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(epoch))
        losses = []
        for start in range(0, SAMPLES - options.batch + 1, options.batch):
            mine = order[start + rank * share : start + (rank + 1) * share]
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(pictures[mine]), digits[mine])
            loss.backward()
            for parameter in model.parameters():
                average(parameter.grad, ranks)
            losses.append(average(loss.detach().clone(), ranks).item())
            optimizer.step()
        if rank == 0:
            save(epoch + 1, model, optimizer)
            danlu.progress(epoch + 1, options.epochs)
            print(f"::danlu metric loss={sum(losses) / len(losses):.6f} step={epoch + 1}", flush=True)

    accuracy = (model(tests).argmax(1) == answers).double().mean().item()
    if rank == 0:
        print(f"final accuracy {accuracy:.3f}", flush=True)
    if ranks > 1:
        dist.destroy_process_group()
    if accuracy < options.expect:
        sys.exit(f"error: the final accuracy {accuracy:.3f} is below {options.expect}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=60, help="samples in a step, over all ranks")
    parser.add_argument("--rate", type=float, default=0.05, help="learning rate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--expect", type=float, default=0.9, help="fail when the final accuracy is below this")
    return parser.parse_args()


def average(tensor, ranks):
    if ranks > 1:
        dist.all_reduce(tensor)
    return tensor.div_(ranks)


def draw_digits(count, seed):
    """A fixed picture for each class, with noise over it."""
    shapes = torch.rand(CLASSES, PIXELS, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    dice = torch.Generator().manual_seed(seed)
    digits = torch.arange(count) % CLASSES
    return shapes[digits] + 0.3 * torch.randn(count, PIXELS, dtype=torch.float64, generator=dice), digits


def save(epoch, model, optimizer):
    if "DANLU_CHECKPOINT_DIR" not in os.environ:
        return
    path = danlu.checkpoint_path(CHECKPOINT)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    # Whole or not at all: a preemption may come at any moment.
    torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path + ".new")
    os.replace(path + ".new", path)
    danlu.checkpoint(step=epoch)


def resume(model, optimizer):
    path = danlu.resume_path(CHECKPOINT)
    if path is None:
        return 0
    saved = torch.load(path)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    print(f"resuming after epoch {saved['epoch']} from {path}", flush=True)
    return saved["epoch"]


if __name__ == "__main__":
    main()
