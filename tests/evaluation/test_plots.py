"""The pictures hold what they promise; how they look is for a human."""

import numpy as np
import pytest

from schedrl.evaluation import plots
from schedrl.evaluation.comparison import Evaluation
from schedrl.evaluation.evaluate import Run
from schedrl.sim.deeprm.outcome import JobStatus
from tests.evaluation.outcomes import make_outcome, random_outcome
from tests.evaluation.test_refusal import leave


@pytest.fixture
def evaluation():
    honest = random_outcome(1, 40)
    refuser = leave(honest, honest.duration >= 10)
    runs = (Run("ppo", "greedy", 0, "fits_now", refuser), Run("sjf", "rule", 0, "fits_now", honest))
    return Evaluation(runs, ("sjf",))


def test_cdf_starts_above_zero_and_reaches_one():
    x, y = plots.cdf(np.array([[3.0, np.nan], [1.0, 2.0]]))
    assert x.tolist() == [1, 2, 3]
    assert y == pytest.approx([1 / 3, 2 / 3, 1])


def test_cdf_axes(evaluation):
    figure = plots.plot_slowdown_cdf(evaluation)
    left, right = figure.axes
    assert left.get_xscale() == right.get_xscale() == right.get_yscale() == "log"
    curves = [line for line in left.lines if len(line.get_ydata()) > 2]
    assert len(curves) == 2
    assert all(curve.get_ydata()[-1] == 1 for curve in curves)
    assert all(curve.get_drawstyle() == "steps-post" for curve in curves)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "unfinished" in labels[0]
    assert "P99" in labels[1]
    dots = [line.get_xdata()[0] for line in right.lines if line.get_marker() == "o"]
    assert dots == pytest.approx([s.p99 for s in evaluation.summaries.values()])
    assert any("P99 ≤ 2" in text.get_text() for text in right.texts)
    assert any("refuses hard jobs" in text.get_text() for text in figure.texts)


def test_no_text_overlaps_another(evaluation):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for figure in (plots.plot_slowdown_cdf(evaluation), plots.plot_utilisation(evaluation)):
        FigureCanvasAgg(figure).draw()
        boxes = [axis.title.get_window_extent() for axis in figure.axes if axis.title.get_text()]
        boxes += [axis.xaxis.label.get_window_extent() for axis in figure.axes if axis.get_xlabel()]
        boxes += [legend.get_window_extent() for legend in figure.legends]
        boxes += [text.get_window_extent() for text in figure.texts if text.get_text()]
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[i + 1 :])


def test_floored_report_says_so(evaluation):
    legacy = Evaluation(evaluation.runs, ("sjf",), floor=True)
    left = plots.plot_slowdown_cdf(legacy).axes[0]
    assert "floored" in left.get_xlabel()
    assert set(np.mod(left.lines[0].get_xdata(), 1)) == {0.0}


def test_utilisation_axes_and_values():
    jobs = [(0, 2, 2, JobStatus.FINISHED), (0, 4, 2, JobStatus.FINISHED)]
    run = Run("sjf", "rule", 0, "fits_now", make_outcome(jobs, 4, demand=[[[10, 2], [5, 1]]]))
    figure = plots.plot_utilisation(Evaluation((run,), ()), names=("CPU", "memory"))
    cpu, memory = figure.axes[:2]
    assert (cpu.get_title(), memory.get_title()) == ("CPU", "memory")
    assert cpu.images[0].get_array().tolist() == [[1, 1, 0.5, 0.5]]
    assert memory.images[0].get_array().tolist() == [[0.2, 0.2, 0.1, 0.1]]
    assert [tick.get_text() for tick in cpu.get_yticklabels()] == ["sjf"]
    assert "episode 0" in plots.plot_utilisation(Evaluation((run,), ()), episode=0)._suptitle.get_text()


def test_pictures_of_nothing_do_not_fail(tmp_path):
    run = Run("idle", "rule", 0, "fits_now", make_outcome([(9, None, 1, JobStatus.PENDING)], end=3))
    plots.plot_slowdown_cdf(Evaluation((run,), ()), tmp_path / "a.png")
    plots.plot_utilisation(Evaluation((run,), ()), tmp_path / "b.png")
    assert (tmp_path / "a.png").stat().st_size > 5000
