package glance

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/store"
	"kernsweep/targets"
)

// staleRehearsal is the age from which a rehearsal is worth a word.
const staleRehearsal = 90 * 24 * time.Hour

// soOn follows a command that the other targets of a thing need too; a shell takes
// it for a comment.
const soOn = "  # and so on, for each"

// look finds what stands against the night, the worst first.
func (g *Glance) look(f Facts) {
	if !f.Begun {
		g.refusals(f)
	}
	g.cuts(f)
	if n := g.Disk; n.Short() && !f.Begun {
		g.add("", fmt.Sprintf("about %s are needed in %s, and %s are free", store.Bytes(n.Need), f.Runs, store.Bytes(n.Free)), f.Prefix+" prune --dry-run, or another folder with --runs")
	}
	for _, l := range g.Lanes {
		t := f.Lab.Target(l.Target)
		// One boot is what such a method gives, so nothing is lost.
		if _, what, do := recovery(f.Lab, t); what != "" && (l.Boots > 1 || !targets.TraitsOf(t.Boot).OnlyOnce) {
			g.add(l.Target, what, do)
		}
	}
	for _, l := range g.Lanes {
		if what := rehearsal(f, l); what != "" {
			g.add(l.Target, what, f.Prefix+" target doctor "+l.Target)
		}
	}
	if !f.Begun {
		g.deaf(f)
	}
	for _, l := range g.Lanes {
		g.blind(f.Lab.Target(l.Target))
	}
}

// add notes a thing; targets of which the same holds share one, and its command
// names the first of them.
func (g *Glance) add(target, what, do string) {
	i := slices.IndexFunc(g.Things, func(t Thing) bool { return t.What == what })
	if i < 0 {
		g.Things = append(g.Things, Thing{What: what, Do: do})
		i = len(g.Things) - 1
	} else if do != g.Things[i].Do && !strings.HasSuffix(g.Things[i].Do, soOn) {
		g.Things[i].Do += soOn
	}
	if target != "" {
		g.Things[i].Targets = append(g.Things[i].Targets, target)
	}
}

// refusals are what a run does not begin with.
func (g *Glance) refusals(f Facts) {
	if missing := orchestrator.MissingImages(f.Lab, f.Plan); len(missing) > 0 {
		g.add("", plural.Of(len(missing), "image file")+" cannot be used: "+missing[0], "put them there (the virtual lab's come from scripts/lab), or leave that target out with --target")
	}
	for _, l := range g.Lanes {
		if held := holder(f, f.Lab.Target(l.Target)); held != nil {
			g.add(l.Target, fmt.Sprintf("in use by %s, since %s until %s (renewed while it lives)", held, clock(held.Since, f.Now), clock(held.Until, f.Now)), f.Again+" --wait")
		}
	}
}

func clock(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04")
	}
	return at.Format("2006-01-02 15:04")
}

// cuts are lanes of which not everything fits before --until.
func (g *Glance) cuts(f Facts) {
	longest := time.Duration(0)
	for _, l := range g.Lanes {
		if l.Fit != nil && l.Fit.Blocks < l.Fit.Of {
			longest = max(longest, l.Estimate)
		}
	}
	for _, l := range g.Lanes {
		if l.Fit != nil && l.Fit.Blocks < l.Fit.Of {
			what := fmt.Sprintf("not every block fits before %s", plan.Clock(f.Forecast.Until, f.Forecast.From))
			g.add(l.Target, what, fmt.Sprintf("%s --until %s  # or let resume go on another night", f.Again, f.Now.Add(longest+longest/20).In(f.Forecast.Until.Location()).Format("'2006-01-02 15:04'")))
		}
	}
}

// rehearsal says what is wrong with a real target's newest rehearsal, "" nothing.
func rehearsal(f Facts, l Lane) string {
	t := f.Lab.Target(l.Target)
	if l.virtual {
		return ""
	}
	r, err := orchestrator.LoadRehearsal(f.Runs, t.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "never rehearsed"
	case err != nil:
		return err.Error()
	case r.Address != orchestrator.AddressOf(t):
		return "rehearsed at another address only"
	case r.Failed() != nil:
		return fmt.Sprintf("its rehearsal %s failed at %q", ago(f.Now, r.When), r.Failed().Name)
	}
	most := staleRehearsal
	if s := f.Lab.Sweep(f.Plan.Sweep); s != nil && s.Rehearsed > 0 {
		most = s.Rehearsed
	}
	if f.Now.Sub(r.When) > most {
		return "rehearsed " + ago(f.Now, r.When)
	}
	return ""
}

// deaf are receivers that cannot be told anything as things stand.
func (g *Glance) deaf(f Facts) {
	s := f.Lab.Sweep(f.Plan.Sweep)
	if s == nil {
		return
	}
	for _, b := range s.Notify {
		if err := b.Ready(); err != nil {
			g.add("", fmt.Sprintf("%s cannot send: %v", b, err), f.Prefix+" notify test "+s.Name)
		}
	}
}

// blind is a target of which a failure tells little, or whose figures count little.
func (g *Glance) blind(t *config.Target) {
	tr := targets.TraitsOf(t.Boot)
	if t.Console == nil && !tr.Local && !tr.OnlyOnce {
		g.add(t.Name, "no console: a hang and a network failure cannot be told apart", `a console block in the target: console "tcp" { address = "HOST:PORT" }, …`)
	}
	if tr.HostBound {
		g.add(t.Name, "its figures depend on the controller's load", `icount = "shift=1" in its boot block, or compare nothing with it`)
	}
}

// recovery says who brings a target back at night, and what is wrong with that.
func recovery(lab *config.Lab, t *config.Target) (word, what, do string) {
	tr := targets.TraitsOf(t.Boot)
	const powerBlock = `a power block in the target: power "tasmota" { address = "PLUG" }, …`
	switch {
	case tr.Local:
		return "restart", "", ""
	case tr.OnlyOnce:
		return "no boots", fmt.Sprintf("boot method %q starts nothing: one boot a run, the others are skipped", t.BootKind), `another boot method: boot "ssh-reboot" {}, "kexec", …`
	case t.KnownGood == "" && !tr.Returns:
		return "nobody", "no known_good kernel: after a failed boot nobody brings it back", "known_good = kernel.NAME in the target"
	case t.KnownGood != "" && tr.Image && !tr.Returns && lab.Kernel(t.KnownGood).ImageFor(t) == nil:
		return "nobody", fmt.Sprintf("its known_good kernel %s has no image for it: after a failed boot nobody brings it back", t.KnownGood),
			fmt.Sprintf("an image block %q in kernel %q", t.Name, t.KnownGood)
	case t.Power != nil:
		return "power", "", ""
	case t.Console != nil:
		return "SysRq", "no power driver: after a hang nobody brings it back, unless SysRq on its console still works", powerBlock
	}
	return "nobody", "no power driver: after a hang nobody brings it back", powerBlock
}

// ago is "3 days ago".
func ago(now, at time.Time) string {
	switch d := now.Sub(at); {
	case d < 0:
		return "in the future"
	case d < time.Minute:
		return "just now"
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days ago", int(d.Hours()/24))
	default:
		return plan.Round(d.Truncate(time.Minute)) + " ago"
	}
}
