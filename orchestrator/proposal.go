package orchestrator

import (
	"fmt"
	"slices"
	"strings"

	"kernsweep/orchestrator/config"
	"kernsweep/targets"
)

// Proposal makes the block of a new target from what was found. What its class
// (nil: none) says already is left out.
type Proposal struct {
	Name   string
	SSH    targets.SSH // as given, paths as the block shall have them
	Class  *config.Target
	Survey *targets.Survey
	Lab    *config.Lab
}

// Block is the proposed block, with the reasons for what was inferred and with
// what is left to be filled in.
func (p Proposal) Block() config.NewTarget {
	s := p.Survey
	class := p.Class
	if class == nil {
		class = &config.Target{BootKind: "none"}
	}
	b := config.NewTarget{Name: p.Name, Class: class.Name, Head: []string{p.head()}}
	if s.Arch.Value != "" && class.Arch != s.Arch.Value {
		b.Body = append(b.Body, config.Line{Name: "arch", Value: s.Arch.Value, Comment: s.ByteOrder.Value + ", by an ELF header there"})
	}
	if s.Arch.Value == "" {
		b.Missing = append(b.Missing, config.Missing{What: "arch: not found out (" + s.Arch.Missing + ")", Like: []config.Line{{Name: "arch", Value: "GOARCH"}}})
	}
	if class.KnownGood == "" {
		p.knownGood(&b)
	}
	b.Body = append(b.Body, p.ssh(class))
	if class.BootKind == "none" {
		p.boot(&b)
	}
	if class.Power == nil {
		b.Missing = append(b.Missing, config.Missing{What: "power: without it a kernel that hangs ends the lane (kernsweep help testbeds lists the drivers)",
			Like: []config.Line{{Name: "power", Label: "tasmota", Inside: []config.Line{{Name: "address", Value: "PLUG"}}}}})
	}
	if i := slices.IndexFunc(s.Running.Notes, func(n string) bool { return strings.HasPrefix(n, targets.Volatile) }); i >= 0 && class.SSH.NewHostKey != "after-boot" {
		b.Missing = append(b.Missing, config.Missing{What: s.Running.Notes[i] + ": if its host key is new after each boot, write this into the ssh block, which accepts it only after a boot by kernsweep",
			Like: []config.Line{{Name: "new_host_key", Value: "after-boot"}}})
	}
	if class.Console == nil {
		b.Missing = append(b.Missing, config.Missing{What: "console: without it a hang cannot be told from a network that fails",
			Like: []config.Line{{Name: "console", Label: "tcp", Inside: []config.Line{{Name: "address", Value: "HOST:PORT"}}}}})
	}
	return b
}

// head says in a line what the machine is.
func (p Proposal) head() string {
	s := p.Survey
	words := []string{s.Distro.Value}
	if s.Running.Release != "" {
		words = append(words, "Linux "+s.Running.Release)
	}
	if s.Running.CPUs > 0 {
		words = append(words, strings.TrimSuffix(fmt.Sprintf("%d CPUs", s.Running.CPUs), map[bool]string{true: "s"}[s.Running.CPUs == 1]))
	}
	if s.Running.MemoryKB > 0 {
		words = append(words, fmt.Sprintf("%d MiB", s.Running.MemoryKB/1024))
	}
	if l := s.Loader(); l.Value != "" {
		words = append(words, "boot loader "+l.Value)
	}
	return "Added " + s.Taken.Format("2006-01-02") + ": " + strings.TrimPrefix(strings.Join(words, ", "), ", ")
}

// ssh is what differs from the class.
func (p Proposal) ssh(class *config.Target) config.Line {
	out := config.Line{Name: "ssh"}
	text := func(name, value, inherited string) {
		if value != "" && value != inherited {
			out.Inside = append(out.Inside, config.Line{Name: name, Value: value})
		}
	}
	own, c := p.SSH, class.SSH
	text("host", own.Host, "")
	if own.Port != 0 && own.Port != c.Port {
		out.Inside = append(out.Inside, config.Line{Name: "port", Value: own.Port})
	}
	text("user", own.User, c.User)
	text("key", own.Key, c.Key)
	text("password_env", own.PasswordEnv, c.PasswordEnv)
	text("password_file", own.PasswordFile, c.PasswordFile)
	text("algorithms", own.Algorithms, c.Algorithms)
	text("known_hosts", own.KnownHosts, c.KnownHosts)
	text("config", own.ConfigFile, c.ConfigFile)
	if len(own.Via) > 0 && strings.Join(own.Via, " ") != strings.Join(c.Via, " ") {
		out.Inside = append(out.Inside, config.Line{Name: "via", Value: own.Via})
	}
	return out
}

// boot takes the best method that works as it stands; the others that the
// evidence speaks for are comments.
func (p Proposal) boot(b *config.NewTarget) {
	chosen := false
	for _, m := range p.Survey.Methods {
		block := config.Line{Name: "boot", Label: m.Name}
		for _, a := range m.Attributes {
			block.Inside = append(block.Inside, config.Line{Name: a[0], Value: a[1]})
		}
		switch {
		case !chosen && m.Fill == "":
			chosen = true
			block.Comment = "boot: " + m.Why
			b.Body = append(b.Body, block)
		case m.Name == "none":
		case m.Fill == "":
			b.Missing = append(b.Missing, config.Missing{What: "boot could be this instead: " + m.Why, Like: []config.Line{block}})
		default:
			b.Missing = append(b.Missing, config.Missing{What: "boot could be this instead: " + m.Why + ". First: " + m.Fill, Like: []config.Line{block}})
		}
	}
}

// knownGood names the kernel that runs, when exactly one of the file's is that.
func (p Proposal) knownGood(b *config.NewTarget) {
	var fits []string
	for _, k := range RunningKernels(p.Lab, p.Survey) {
		if k.Release != "" && k.ImageFor(&config.Target{Target: targets.Target{Name: p.Name, Arch: p.Survey.Arch.Value}}) != nil {
			fits = append(fits, k.Name)
		}
	}
	if len(fits) == 1 {
		b.Body = append(b.Body, config.Line{Name: "known_good", Value: config.Expr("kernel." + fits[0]), Comment: "its release and scheduler are what runs now"})
		return
	}
	b.Missing = append(b.Missing, config.Missing{What: "known_good: the kernel that recovery returns to",
		Like: []config.Line{{Name: "known_good", Value: config.Expr("kernel.NAME")}}})
}
