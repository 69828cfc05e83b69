package validity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Thresholds of the clock rules.
const (
	jumpSlack   = 0.050  // seconds
	jumpRate    = 500e-6 // the most that NTP slews (adjtimex(2))
	rateOff     = 0.01
	rateLeast   = 5.0   // seconds; in less, 1 % is no more than a step or two of /proc/uptime
	coarseWall  = 1.0   // seconds: what the shell's date prints
	coarseStart = 0.010 // seconds: a step of /proc/uptime
)

func clockRules() []trialRule {
	return []trialRule{
		{Rule{Name: "clock jumped", Hard: true, Threshold: "the time of day and the monotonic clock advance equally, but for 50 ms and 500 ppm",
			Why: "Tools that time by the time of day, as iperf2 does, print rates of seconds that did not pass."}, clockJumped},
		{Rule{Name: "clock is off", Hard: true, Threshold: "the target's seconds are the controller's, but for 1 %, in a trial of 5 s and more",
			Why: "A clock that loses ticks makes its machine look fast."}, clockOff},
	}
}

// clocks are how far both of the target's clocks advanced, in seconds, and the
// step of the coarser one; why says why they are not known.
func (e *Evidence) clocks() (mono, wall, step float64, why string) {
	s := e.Spool
	switch {
	case s == nil:
		return 0, 0, 0, noSpool
	case s.End == nil:
		return 0, 0, 0, "the spool has no end"
	}
	a, err1 := strconv.ParseInt(s.Begin["wall"], 10, 64)
	b, err2 := strconv.ParseInt(s.End["wall"], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, 0, 0, "the agent did not read the time of day"
	}
	if strings.HasPrefix(s.Begin["agent"], "shell") {
		step = coarseWall + 2*coarseStart
	}
	return float64(s.EndNS-s.BeginNS) / 1e9, float64(b-a) / 1e9, step, ""
}

func clockJumped(e *Evidence) answer {
	mono, wall, step, why := e.clocks()
	if why != "" {
		return unchecked(why)
	}
	off := wall - mono
	if math.Abs(off) <= jumpSlack+jumpRate*mono+step {
		return answer{}
	}
	where := "forward"
	if off < 0 {
		where = "back"
	}
	return against(fmt.Sprintf("the target's time of day jumped %s by %.3g s during the trial", where, math.Abs(off)),
		fmt.Sprintf("the time of day advanced by %.3f s, the monotonic clock by %.3f s", wall, mono))
}

// clockOff compares how the uptime grew, between two looks of the controller, with
// the least and the most time that can have passed: the length of the looks
// themselves is allowed for exactly, so that a slow link accuses nobody. The
// agent's monotonic clock must bear the uptime out: in some containers and test
// beds /proc/uptime is a file like any other.
func clockOff(e *Evidence) answer {
	switch {
	case e.Emulated || e.Elapsed != nil && e.Elapsed.Least < rateLeast:
		return answer{}
	case e.Elapsed == nil:
		return unchecked("the controller did not see the whole trial")
	case e.Spool == nil || e.Spool.End == nil:
		return unchecked(noSpool)
	}
	x := *e.Elapsed
	if float64(e.Spool.EndNS-e.Spool.BeginNS)/1e9 > x.Target+5*coarseStart {
		return unchecked("the target's /proc/uptime does not follow its clock")
	}
	evidence := fmt.Sprintf("%.2f s on the target, %.2f to %.2f s on the controller", x.Target, x.Least, x.Most)
	if x.Target > (1+rateOff)*x.Most+2*coarseStart {
		return against(fmt.Sprintf("the target's clock is fast: it counted %.3g s more than passed", x.Target-x.Most), evidence)
	}
	if x.Target < (1-rateOff)*x.Least-2*coarseStart {
		return against(fmt.Sprintf("the target's clock is slow, or stood still: it counted %.3g s less than passed", x.Least-x.Target), evidence)
	}
	return answer{}
}
