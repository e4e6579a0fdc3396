"""Run by `python3 -m unittest discover python`."""

import contextlib
import io
import os
import signal
import tempfile
import unittest
from unittest import mock

import danlu


def printed(call):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        call()
    return out.getvalue()


class Lines(unittest.TestCase):
    def test_progress_is_a_fraction_or_steps_of_a_total(self):
        self.assertEqual(printed(lambda: danlu.progress(0.42)), "::danlu progress 0.420000\n")
        self.assertEqual(printed(lambda: danlu.progress(3, 4)), "::danlu progress 0.750000\n")
        self.assertEqual(printed(lambda: danlu.progress(9, 4)), "::danlu progress 1.000000\n")

    def test_checkpoints_may_name_their_step(self):
        self.assertEqual(printed(danlu.checkpoint), "::danlu checkpoint\n")
        self.assertEqual(printed(lambda: danlu.checkpoint(step=300)), "::danlu checkpoint step=300\n")

    def test_metrics_keep_every_digit(self):
        line = printed(lambda: danlu.metric(step=2, loss=0.1 + 0.2))
        self.assertEqual(line, "::danlu metric loss=0.30000000000000004 step=2\n")
        self.assertEqual(printed(lambda: danlu.metric(loss=float("nan"))), "::danlu metric loss=nan\n")


class Attempts(unittest.TestCase):
    def test_what_an_earlier_attempt_saved_is_found(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"DANLU_RESUME_DIR": folder}):
            self.assertIsNone(danlu.resume_path("model"))
            open(os.path.join(folder, "model"), "w").close()
            self.assertEqual(danlu.resume_path("model"), os.path.join(folder, "model"))

    def test_without_danlu_it_is_the_first_attempt_of_one_process(self):
        with mock.patch.dict(os.environ, clear=True):
            self.assertEqual((danlu.attempt(), danlu.rank(), danlu.world_size()), (1, 0, 1))
            self.assertIsNone(danlu.resume_path("model"))

    def test_being_asked_to_stop_is_noticed_and_passed_on(self):
        heard = []
        before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
        try:
            self.assertFalse(danlu.stopping())
            os.kill(os.getpid(), signal.SIGTERM)
            self.assertTrue(danlu.stopping())
            self.assertEqual(heard, [1])
        finally:
            signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    unittest.main()
