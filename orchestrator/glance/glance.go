// Package glance shows a plan on one screen: a row for each lane, what stands
// against the night with the command for it, and when it would be over. It reads
// files of the controller and contacts nothing.
package glance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/plural"
	"kernsweep/targets"
)

// Facts are what a glance is made of.
type Facts struct {
	Lab      *config.Lab
	Plan     *plan.Plan
	History  plan.History
	Forecast plan.Forecast // its Lanes are empty without --until
	Runs     string        // folder of the run directories
	Leases   []leases.Record
	Mine     func(leases.Record) bool // the lease is this process's; nil: none is
	Again    string                   // the command line that runs this plan: "kernsweep run night"
	Prefix   string                   // what goes before another command: "kernsweep -f lab.hcl"
	Begun    bool                     // a run begins, and its preflight tells of images, leases, room and receivers
	Now      time.Time
}

// Glance is a plan at a glance; it is also what --json prints.
type Glance struct {
	Lanes  []Lane   `json:"lanes"`
	Disk   Disk     `json:"disk"`
	Over   string   `json:"over"`   // when it would be over, should it begin now: RFC 3339
	Notify []string `json:"notify"` // who is told
	Things []Thing  `json:"things"` // to look at, the worst first

	takes   string
	until   bool
	begun   bool
	over    time.Time
	now     time.Time
	na      []string
	warning []string // of the design
}

// Lane is a row.
type Lane struct {
	Target    string        `json:"target"`
	Kernels   []string      `json:"kernels"`
	Boots     int           `json:"boots"`
	Trials    int           `json:"trials"`
	Estimate  time.Duration `json:"estimate"` // ns
	From      plan.Source   `json:"from"`
	Fit       *Fit          `json:"fit,omitempty"` // nil without --until
	Recovery  string        `json:"recovery"`      // power, SysRq, nobody, restart (a virtual target) or no boots
	Rehearsed *time.Time    `json:"rehearsed"`     // when the newest rehearsal ended, whatever it found; null: never
	// RehearsalFailed says that it found a fault.
	RehearsalFailed bool   `json:"rehearsal_failed,omitempty"`
	Held            string `json:"held,omitempty"`

	virtual bool
}

// Fit is how many of a lane's blocks are over before --until.
type Fit struct {
	Blocks int `json:"blocks"`
	Of     int `json:"of"`
}

// Thing is one thing to look at before the night.
type Thing struct {
	Targets []string `json:"targets,omitempty"`
	What    string   `json:"what"`
	Do      string   `json:"do"` // a command, or what to write into the configuration
}

// Of makes the glance of a plan.
func Of(f Facts) Glance {
	p := f.Plan
	g := Glance{takes: p.Takes(), now: f.Now, begun: f.Begun, until: len(f.Forecast.Lanes) > 0,
		over: f.Now.Add(p.Estimate()), Things: []Thing{}, Notify: []string{}}
	g.Over = g.over.Format(time.RFC3339)
	g.Disk = need(f)
	for _, l := range p.Lanes {
		if t := f.Lab.Target(l.Target); t != nil {
			g.Lanes = append(g.Lanes, row(f, l, t))
		}
	}
	if s := f.Lab.Sweep(p.Sweep); s != nil {
		for _, b := range s.Notify {
			g.Notify = append(g.Notify, b.String())
		}
	}
	g.na = reasons(p)
	for _, w := range p.Warnings {
		if !strings.HasPrefix(w, "target ") {
			g.warning = append(g.warning, w)
		}
	}
	g.look(f)
	return g
}

func row(f Facts, l plan.Lane, t *config.Target) Lane {
	r := Lane{Target: l.Target, Boots: len(l.Boots), Estimate: l.Estimate, From: plan.SourceOf(f.Lab, l, f.History),
		virtual: targets.TraitsOf(t.Boot).Local}
	for _, b := range l.Boots {
		r.Trials += len(b.Trials)
		if !slices.Contains(r.Kernels, b.Kernel) {
			r.Kernels = append(r.Kernels, b.Kernel)
		}
	}
	slices.Sort(r.Kernels)
	r.Recovery, _, _ = recovery(f.Lab, t)
	for _, s := range f.Forecast.Lanes {
		if s.Target == l.Target {
			r.Fit = &Fit{s.Fit, s.Blocks}
		}
	}
	if reh, err := orchestrator.LoadRehearsal(f.Runs, t.Name); err == nil && reh.Address == orchestrator.AddressOf(t) && !r.virtual {
		r.Rehearsed, r.RehearsalFailed = &reh.When, reh.Failed() != nil
	}
	if held := holder(f, t); held != nil {
		r.Held = held.String()
	}
	return r
}

// holder is who else uses a target now; nil: nobody that is known of.
func holder(f Facts, t *config.Target) *leases.Record {
	if targets.TraitsOf(t.Boot).Local {
		return nil
	}
	for i, r := range f.Leases {
		if r.State == leases.Held && !(f.Mine != nil && f.Mine(r)) && orchestrator.LeaseIsOf(r, t) {
			return &f.Leases[i]
		}
	}
	return nil
}

// reasons are why cells cannot be had, those that differ in the kernel only as one.
func reasons(p *plan.Plan) []string {
	type group struct {
		first   string
		cells   int
		kernels map[string]bool
	}
	groups := map[string]*group{}
	var order []*group
	for _, na := range p.NA {
		key := kernelWord.ReplaceAllString(na.Reason, "")
		if groups[key] == nil {
			groups[key] = &group{first: na.Reason, kernels: map[string]bool{}}
			order = append(order, groups[key])
		}
		groups[key].cells++
		groups[key].kernels[na.Kernel] = true
	}
	var out []string
	for _, g := range order {
		text := fmt.Sprintf("%s n/a: %s", plural.Of(g.cells, "cell"), g.first)
		if n := len(g.kernels) - 1; n > 0 && strings.Contains(g.first, "kernel ") {
			text += fmt.Sprintf(", and so is it with %s more", plural.Of(n, "kernel"))
		}
		out = append(out, text)
	}
	return out
}

var kernelWord = regexp.MustCompile(`kernel \S+`)
