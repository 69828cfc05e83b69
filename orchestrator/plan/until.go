package plan

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
)

// Forecast is what of a plan is over before a point in time, by its estimates.
// Whole blocks count: half of one compares nothing.
type Forecast struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	Said  string    `json:"said,omitempty"` // Deadline.Said
	Auto  bool      `json:"auto,omitempty"` // boots = "auto": so many blocks at most
	Lanes []Share   `json:"lanes"`
}

// Share is a lane's part of a forecast.
type Share struct {
	Target  string        `json:"target"`
	Blocks  int           `json:"blocks"` // that have something to run
	Fit     int           `json:"fit"`
	LeftOut []int         `json:"left_out,omitempty"` // numbers of the other blocks
	Trials  int           `json:"trials_left_out"`    // in them, warm-ups not counted
	First   time.Duration `json:"first"`              // of the first block, with the way home; ns
	Few     bool          `json:"few,omitempty"`      // fewer blocks fit than a verdict needs
}

// ForecastUntil says what of p is over by d.At when it begins at from.
func ForecastUntil(lab *config.Lab, p *Plan, h History, d Deadline, from time.Time) Forecast {
	f := Forecast{From: from.Round(0), Until: d.At, Said: d.Said, Auto: p.Design.Auto}
	for _, l := range p.Lanes {
		c := NewCosts(lab, p, l.Target, h)
		s, spent := Share{Target: l.Target}, time.Duration(0)
		for _, block := range l.InBlocks() {
			need := time.Duration(0)
			for _, b := range block {
				if c.once && b.Number != l.Boots[0].Number {
					continue // its trials are skipped
				}
				need += c.Boot(b)
			}
			if need == 0 {
				continue
			}
			home := c.Home(block[len(block)-1].Kernel)
			if s.Blocks++; s.Blocks == 1 {
				s.First = need + home
			}
			if len(s.LeftOut) == 0 && !f.From.Add(spent+need+home).After(f.Until) {
				s.Fit++
				spent += need
				continue
			}
			s.LeftOut = append(s.LeftOut, block[0].Block)
			s.Trials += Counted(block)
		}
		least := stats.Defaults().MinBoots
		s.Few = p.Family > 0 && l.Rounds() == p.Blocks && s.Fit > 0 && s.Fit < least && s.Blocks >= least
		f.Lanes = append(f.Lanes, s)
	}
	return f
}

// InBlocks are the lane's boots, block by block.
func (l Lane) InBlocks() [][]Boot {
	var out [][]Boot
	for i, b := range l.Boots {
		if i == 0 || b.Block != l.Boots[i-1].Block {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], b)
	}
	return out
}

// Counted are the trials of boots, warm-ups not counted.
func Counted(boots []Boot) int {
	n := 0
	for _, b := range boots {
		for _, s := range b.Trials {
			if !s.Warmup() {
				n++
			}
		}
	}
	return n
}

// Nothing is the error of a forecast in which no lane has time for anything: how
// long each would take, and from when on one has.
func (f Forecast) Nothing() error {
	least := time.Duration(-1)
	var needs []string
	for _, s := range f.Lanes {
		if s.Fit > 0 || s.Blocks == 0 {
			return nil
		}
		if least < 0 || s.First < least {
			least = s.First
		}
		needs = append(needs, fmt.Sprintf("%s on %s", Round(s.First), s.Target))
	}
	if least < 0 {
		return nil
	}
	return fmt.Errorf("until %s there is no time for one whole block: it takes about %s, the way home included; %s is the earliest that would do",
		f.when(), strings.Join(needs, ", "), f.fits(least))
}

// when is "07:00 CET (10h12m from now)".
func (f Forecast) when() string {
	d := f.Until.Sub(f.From)
	in := Round(d)
	if days := int(d.Hours() / 24); days > 1 {
		in = fmt.Sprintf("%d days", days)
	}
	return fmt.Sprintf("%s (%s from now)", Clock(f.Until, f.From), in)
}

// fits is the first full minute that leaves d.
func (f Forecast) fits(d time.Duration) string {
	at := f.From.Add(d).In(f.Until.Location()).Truncate(time.Minute).Add(time.Minute)
	return Clock(at, f.From)
}

// WriteText prints the forecast for a person.
func (f Forecast) WriteText(out io.Writer) error {
	w := bufio.NewWriter(out)
	if f.Said != "" {
		fmt.Fprintln(w, f.Said)
	}
	fmt.Fprintf(w, "until %s:", f.when())
	lines := f.lines()
	for _, s := range lines {
		if len(lines) > 1 {
			fmt.Fprint(w, "\n ")
		}
		fmt.Fprint(w, " "+s)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// lines say what fits, lanes of which the same is to be said in one.
func (f Forecast) lines() []string {
	const here = "\x00" // where the names go
	names := map[string][]string{}
	var order []string
	for _, s := range f.Lanes {
		name := s.Target
		s.Target = here
		text := s.text(f)
		if names[text] == nil {
			order = append(order, text)
		}
		names[text] = append(names[text], name)
	}
	for i, text := range order {
		list := names[text]
		if n := len(list); n > 4 {
			list = []string{list[0], list[1], fmt.Sprintf("%d more", n-2)}
		}
		order[i] = strings.Replace(text, here, strings.Join(list, ", "), 1)
	}
	return order
}

func (s Share) text(f Forecast) string {
	switch {
	case s.Blocks == 0:
		return "nothing to measure on " + s.Target
	case len(s.LeftOut) == 0 && s.Blocks == 1:
		return "its one block fits on " + s.Target
	case len(s.LeftOut) == 0:
		return fmt.Sprintf("all %d blocks fit on %s", s.Blocks, s.Target)
	case s.Fit == 0:
		return fmt.Sprintf("no block fits on %s, the first takes about %s (%s would do); left out: %s, %d trials",
			s.Target, Round(s.First), f.fits(s.First), ranges(s.LeftOut), s.Trials)
	}
	most := ""
	if f.Auto {
		most = "at most "
	}
	text := fmt.Sprintf("%d of %s%d blocks fit on %s; left out: %s, %d trials", s.Fit, most, s.Blocks, s.Target, ranges(s.LeftOut), s.Trials)
	if s.Few {
		text += fmt.Sprintf("; so few show nothing, each verdict needs %d of each kernel (resume goes on another night)", stats.Defaults().MinBoots)
	}
	return text
}

// ranges is "block 3" or "blocks 3-5, 8".
func ranges(blocks []int) string {
	var b strings.Builder
	for i := 0; i < len(blocks); {
		j := i
		for j+1 < len(blocks) && blocks[j+1] == blocks[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if fmt.Fprint(&b, blocks[i]); j > i {
			fmt.Fprintf(&b, "-%d", blocks[j])
		}
		i = j + 1
	}
	if len(blocks) == 1 {
		return "block " + b.String()
	}
	return "blocks " + b.String()
}

// CutText says what a lane left out, "" for nothing.
func CutText(lane string, c *results.Cut) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s: %d trials from block %d on were left out: they would not have ended before %s",
		lane, c.Trials, c.Block, c.Until.Local().Format("2006-01-02 15:04 MST"))
}
