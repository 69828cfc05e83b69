package plan

import (
	"bufio"
	"fmt"
	"io"
	"time"
)

// WriteText prints the plan for a person: lanes, blocks, boots and trials in
// order, the estimate, and what is n/a and why.
func (p *Plan) WriteText(out io.Writer) error {
	w := bufio.NewWriter(out)
	p.writeHead(w)
	for _, l := range p.Lanes {
		p.writeLane(w, l)
	}
	if len(p.NA) > 0 {
		fmt.Fprintf(w, "\nn/a (%d cells)\n", len(p.NA))
		for _, n := range p.NA {
			fmt.Fprintf(w, "  %s: %s\n", n.Cell, n.Reason)
		}
	}
	if len(p.Warnings) > 0 {
		fmt.Fprintf(w, "\nBefore you leave\n")
		for _, s := range p.Warnings {
			fmt.Fprintf(w, "  %s\n", s)
		}
	}
	return w.Flush()
}

// WriteHead prints what the plan is of, and how it measures.
func (p *Plan) WriteHead(out io.Writer) error {
	w := bufio.NewWriter(out)
	p.writeHead(w)
	return w.Flush()
}

func (p *Plan) writeHead(w io.Writer) {
	fmt.Fprintf(w, "Sweep %s, seed %d: %s, %s, %s, %s (the longest lane decides)\n", p.Sweep, p.Seed,
		count(len(p.Lanes), "lane"), count(p.Boots(), "boot"), count(p.Trials(), "trial"), p.Takes())
	p.writeDesign(w)
}

func (p *Plan) writeDesign(w io.Writer) {
	d := p.Design
	fmt.Fprintf(w, "Each kernel boots %s a target, %s of each cell a boot, %d warm-up dropped\n",
		p.often(), count(p.Repeat, "trial"), p.Warmup)
	if d.Auto {
		fmt.Fprintf(w, "After block %d a lane ends as soon as every primary 95 %% interval is ±%s or narrower (boots = \"auto\")\n", d.MinBoots, percent(d.Narrow()))
	}
	if d.NoiseFloor {
		fmt.Fprintf(w, "Noise floor: each target's baseline is compared with itself, %d boots with %d\n", p.Blocks/2, p.Blocks/2)
	}
}

func (p *Plan) writeLane(w io.Writer, l Lane) {
	fmt.Fprintf(w, "\nLane %s: %s, about %s", l.Target, count(len(l.Boots), "boot"), Round(l.Estimate))
	if b := p.Baseline[l.Target]; b != "" {
		fmt.Fprintf(w, ", baseline %s", b)
	}
	fmt.Fprintln(w)
	block := 0
	for _, b := range l.Boots {
		if b.Block != block {
			block = b.Block
			fmt.Fprintf(w, "  block %d%s\n", block, p.ifNeeded(block))
		}
		fmt.Fprintf(w, "    boot %03d  %-20s about %s\n", b.Number, b.Kernel, Round(b.Estimate))
		for i := 0; i < len(b.Trials); {
			c, n, warm := b.Trials[i].Cell, 0, 0
			for ; i < len(b.Trials) && b.Trials[i].Cell == c; i++ {
				if b.Trials[i].Repeat > 0 {
					n++
				} else {
					warm++
				}
			}
			fmt.Fprintf(w, "              %s.%s  x%d", c.Workload, c.Scenario, n)
			if warm > 0 {
				fmt.Fprintf(w, " (+%d warm-up)", warm)
			}
			fmt.Fprintln(w)
		}
	}
}

// ifNeeded marks the blocks that boots = "auto" may leave out.
func (p *Plan) ifNeeded(block int) string {
	if p.Design.Auto && block > p.Design.MinBoots {
		return " (if needed)"
	}
	return ""
}

// Round shortens a duration for people: whole seconds below ten minutes, whole
// minutes above.
func Round(d time.Duration) string {
	if d < 10*time.Minute {
		return d.Round(time.Second).String()
	}
	d = d.Round(time.Minute)
	if h := int(d.Hours()); h > 0 {
		return fmt.Sprintf("%dh%02dm", h, int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dm", int(d.Minutes()))
}
