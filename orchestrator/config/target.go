package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"kernsweep/targets"
)

// targetBlock is the content of a target or class block.
type targetBlock struct {
	Class      Ref      `hcl:"class,optional" ref:"class" doc:"class.NAME whose attributes and inner blocks are taken where this block has none"`
	Note       string   `hcl:"note,optional" doc:"free text, shown by target list"`
	Arch       string   `hcl:"arch,optional" doc:"GOARCH of the target: amd64, mips (big-endian), mipsle, …; checked against an ELF header there"`
	Uses       []string `hcl:"uses,optional" doc:"names of shared things, locked while a trial uses them"`
	Labels     []string `hcl:"labels,optional" doc:"words to choose targets by"`
	KnownGood  Ref      `hcl:"known_good,optional" ref:"kernel" doc:"kernel.NAME that recovery and the end of a lane return to (default: none, no recovery)"`
	Agent      string   `hcl:"agent,optional" doc:"\"auto\" (default), \"go\" or \"shell\""`
	Scale      float64  `hcl:"scale,optional" doc:"multiplies fixed work, equal for all kernels (default 1)"`
	Settle     duration `hcl:"settle,optional" doc:"wait after a verified boot before the first trial (default 0s)"`
	Quarantine int      `hcl:"quarantine,optional" doc:"infrastructure failures in a row before the lane is given up: its other trials are skipped with the first cause, other lanes go on (default 3)"`
	Path       string   `hcl:"path,optional" doc:"directories, joined by colons, put before PATH for every command there: \"/opt/bin:/opt/sbin\""`
	Ready      string   `hcl:"ready,optional" doc:"regular expression on the console that says SSH may be tried"`

	// Short for the same in the ssh block; moved there before decoding.
	Host string `hcl:"host,optional" doc:"short for host in the ssh block"`
	Port int    `hcl:"port,optional" doc:"short for port in the ssh block"`
	User string `hcl:"user,optional" doc:"short for user in the ssh block"`

	SSH      targets.SSH      `hcl:"ssh,block"`
	Network  targets.Network  `hcl:"network,block"`
	Timeouts targets.Timeouts `hcl:"timeouts,block"`
	Failures Failures         `hcl:"failures,block"`
	Boot     []*block         `hcl:"boot,block"`
	Power    []*block         `hcl:"power,block"`
	Console  []*block         `hcl:"console,block"`
}

type duration = time.Duration

// class merges a class with those it inherits from; nil after an error.
func (l *loader) class(name string, path []string) *body {
	if b, ok := l.classes[name]; ok {
		return b
	}
	b := l.decl["class"][name]
	if b == nil {
		return nil
	}
	if contains(path, name) {
		for contains(path[1:], name) {
			path = path[1:]
		}
		l.err(b.pos, "take the class attribute out of one of them", "classes inherit from each other in a circle: %s", strings.Join(append(path, name), " -> "))
		return nil
	}
	m := l.inherit(b, append(path, name))
	l.classes[name] = m
	return m
}

// inherit is a block's body with the attributes and blocks of its classes.
func (l *loader) inherit(b *block, path []string) *body {
	own := l.prepare(b)
	a := own.attrs["class"]
	if a == nil {
		return own
	}
	var r struct {
		Class Ref `hcl:"class,optional" ref:"class"`
	}
	if !l.setAttr(a, destination{fieldsOf(reflect.TypeOf(r))[0], reflect.ValueOf(&r).Elem().Field(0)}) || r.Class.Name == "" {
		return own
	}
	parent := l.class(r.Class.Name, path)
	if parent == nil {
		return own
	}
	return merge(parent, own)
}

// prepare moves host, port and user into the ssh block, and refuses a second
// block of a kind, so that bodies can be merged.
func (l *loader) prepare(b *block) *body {
	own := &body{attrs: map[string]*attr{}}
	for n, a := range b.body.attrs {
		own.attrs[n] = a
	}
	first := map[string]*block{}
	for _, in := range b.body.blocks {
		if f := first[in.kind]; f != nil {
			l.err(in.pos, fmt.Sprintf("the first is at %s", f.pos), "a %s block may hold only one %s block", b.kind, in.kind)
			continue
		}
		first[in.kind] = in
		own.blocks = append(own.blocks, in)
	}
	ssh := &body{attrs: map[string]*attr{}}
	for _, n := range []string{"host", "port", "user"} {
		a := own.attrs[n]
		if a == nil {
			continue
		}
		delete(own.attrs, n)
		if in := first["ssh"]; in != nil && in.body.attrs[n] != nil {
			l.err(a.pos, fmt.Sprintf("the other is at %s", in.body.attrs[n].pos), "%q is given twice: here and in the ssh block", n)
			continue
		}
		ssh.attrs[n] = a
	}
	if len(ssh.attrs) == 0 {
		return own
	}
	if first["ssh"] == nil {
		own.blocks = append(own.blocks, &block{kind: "ssh", pos: b.pos, body: ssh})
		return own
	}
	for i, in := range own.blocks {
		if in.kind == "ssh" {
			own.blocks[i] = &block{kind: in.kind, labels: in.labels, pos: in.pos, labelPos: in.labelPos, body: merge(ssh, in.body)}
		}
	}
	return own
}

func (l *loader) addTarget(b *block) {
	if b.name() == controller {
		l.err(b.labelPos[0], "a peer called so is the machine that runs kernsweep", "a target cannot be called %q", controller)
	}
	m := l.inherit(b, nil)
	t := l.target(b, m, false)
	l.lab.Targets = append(l.lab.Targets, t)
	l.claims = append(l.claims, l.claim(b, m, t))
}

// target decodes a merged body. A class is decoded too, so that its mistakes
// are found where nothing inherits it; it need not be complete.
func (l *loader) target(b *block, m *body, partial bool) *Target {
	raw := targetBlock{Agent: "auto", Scale: 1, Quarantine: 3, Failures: defaultFailures()}
	raw.SSH = targets.SSH{Keepalive: 15 * time.Second, Sessions: 10, NewHostKey: "reject"}
	raw.Timeouts = targets.Timeouts{Down: 2 * time.Minute, Boot: 5 * time.Minute, Silence: time.Minute, Exec: 30 * time.Second}
	whole := l.decode(b, m, inBlock(b.kind), partial, &raw)
	l.sshPaths(&raw.SSH)
	t := &Target{
		Class: raw.Class.Name, Note: raw.Note, Uses: raw.Uses, Labels: raw.Labels, KnownGood: raw.KnownGood.Name, Agent: raw.Agent,
		Scale: raw.Scale, Settle: raw.Settle, Quarantine: raw.Quarantine, Failures: l.failures(m, raw.Failures), Pos: b.pos,
	}
	t.Name, t.Arch, t.Ready = b.name(), raw.Arch, raw.Ready
	t.SSH, t.Network, t.Timeout = raw.SSH, raw.Network, raw.Timeouts
	t.SSH.Path = raw.Path
	l.checkTarget(m, t)
	l.slots(raw, t, partial)
	if boot := m.find("boot"); boot != nil && !partial && targets.TraitsOf(t.Boot).Console && t.Console == nil && len(raw.Console) == 0 {
		l.err(boot.pos, "write console \"tcp\" { address = \"HOST:PORT\" } beside it, or another console: kernsweep help testbeds lists them",
			"boot %q types on the serial console, and target %q has none", t.BootKind, t.Name)
	}
	if n, ok := t.Boot.(targets.Networker); ok {
		if m.find("network") == nil {
			t.Network = n.Network()
		}
	} else if ssh := m.find("ssh"); whole && !partial && (ssh == nil || ssh.body.attrs["host"] == nil) {
		l.err(b.pos, "write ssh { host = \"…\" }", "target %q has no address", t.Name)
	}
	return t
}

// slots makes the drivers. One that can do more than boot fills the slots that
// are left empty.
func (l *loader) slots(raw targetBlock, t *Target, partial bool) {
	if boot, kind, ok := slot(l, "boot", raw.Boot, l.drivers.boot, partial); ok {
		t.Boot, t.BootKind = boot, kind
	}
	if power, kind, ok := slot(l, "power", raw.Power, l.drivers.power, partial); ok {
		t.Power, t.PowerKind = power, kind
	}
	if console, kind, ok := slot(l, "console", raw.Console, l.drivers.console, partial); ok {
		t.Console, t.ConsoleKind = console, kind
	}
	if len(raw.Boot) == 0 {
		t.Boot, t.BootKind = l.drivers.boot["none"](), "none"
	}
	if p, ok := t.Boot.(targets.Power); ok && len(raw.Power) == 0 {
		t.Power, t.PowerKind = p, t.BootKind
	}
	if c, ok := t.Boot.(targets.Console); ok && len(raw.Console) == 0 {
		t.Console, t.ConsoleKind = c, t.BootKind
	}
}

// slot makes the driver that a block's label names. The decoded struct is the
// driver.
func slot[T any](l *loader, kind string, blocks []*block, table map[string]func() T, partial bool) (driver T, label string, ok bool) {
	if len(blocks) == 0 {
		return driver, "", false
	}
	b := blocks[0]
	valid := keys(table)
	if len(b.labels) != 1 {
		l.err(b.pos, "there are "+quoted(valid), "a %s block needs the name of a driver: %s \"NAME\" { … }", kind, kind)
		return driver, "", false
	}
	label = b.labels[0]
	make := table[label]
	if make == nil {
		l.err(b.labelPos[0], didYouMean(label, valid, "there are "+quoted(valid)), "there is no %s driver %q", kind, label)
		return driver, label, false
	}
	driver = make()
	if v := reflect.ValueOf(driver); v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("config: the %s driver %q is no pointer to a struct", kind, label))
	}
	ok = l.decode(b, b.body, fmt.Sprintf("in a %s %q block", kind, label), partial, driver)
	if ok && !partial {
		ok = l.check(b.pos, b.body, driver)
	}
	return driver, label, ok
}

// checkTarget checks what the types cannot.
func (l *loader) checkTarget(m *body, t *Target) {
	l.oneOf(m, "agent", t.Agent, "auto", "go", "shell")
	if valid, _ := archs(); m.attrs["arch"] != nil && t.Arch != "" && !contains(valid, t.Arch) {
		l.value(m.attrs["arch"].valuePos(), didYouMeanArch(t.Arch), "%q is no architecture (GOARCH)", t.Arch)
	}
	for name, list := range map[string][]string{"uses": t.Uses, "labels": t.Labels} {
		for i, word := range list {
			l.identifier(posOf(element(m.attrs[name].expr, i).Range()), word)
		}
	}
	if t.Scale <= 0 {
		l.atAttr(m, "scale", "must be greater than 0")
	}
	if t.Quarantine < 1 {
		l.atAttr(m, "quarantine", "must be at least 1")
	}
	if _, err := regexp.Compile(t.Ready); err != nil {
		l.atAttr(m, "ready", "is no regular expression: "+err.Error())
	}
	for _, dir := range strings.Split(t.SSH.Path, ":") {
		if t.SSH.Path != "" && !strings.HasPrefix(dir, "/") {
			l.atAttr(m, "path", "takes directories from the root on, joined by colons")
		}
	}
	if ssh := m.find("ssh"); ssh != nil {
		l.oneOf(ssh.body, "algorithms", t.SSH.Algorithms, "", "legacy")
		l.oneOf(ssh.body, "new_host_key", t.SSH.NewHostKey, "reject", "after-boot")
		if t.SSH.Port < 0 || t.SSH.Port > 65535 || t.SSH.Port == 0 && ssh.body.attrs["port"] != nil && ssh.body.attrs["port"].ok {
			l.atAttr(ssh.body, "port", "must be from 1 to 65535")
		}
		for _, line := range t.SSH.HostKeys {
			if why := badHostKey(line); why != "" {
				l.value(ssh.body.attrs["host_keys"].valuePos(), "", "%s", why)
			}
		}
		if t.SSH.Sessions < 1 {
			l.atAttr(ssh.body, "sessions", "must be at least 1")
		}
		if t.SSH.Keepalive <= 0 {
			l.atAttr(ssh.body, "keepalive", "must be longer than 0s")
		}
	}
	if in := m.find("timeouts"); in != nil {
		for name, d := range map[string]time.Duration{"down": t.Timeout.Down, "boot": t.Timeout.Boot, "silence": t.Timeout.Silence, "exec": t.Timeout.Exec} {
			if d <= 0 {
				l.atAttr(in.body, name, "must be longer than 0s: every wait needs an end")
			}
		}
	}
}

// atAttr reports an attribute's value.
func (l *loader) atAttr(m *body, name, what string) {
	if a := m.attrs[name]; a != nil {
		l.value(a.valuePos(), "", "%q %s", name, what)
	}
}

func (l *loader) oneOf(m *body, name, value string, valid ...string) {
	a := m.attrs[name]
	if a == nil || value == "" || contains(valid, value) {
		return
	}
	var shown []string
	for _, v := range valid {
		if v != "" {
			shown = append(shown, v)
		}
	}
	l.value(a.valuePos(), didYouMean(value, shown, "there is "+quoted(shown)), "%q is no value of %q", value, name)
}
