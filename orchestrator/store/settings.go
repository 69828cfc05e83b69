package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
)

// settings are those of everything a plan uses, by "KIND NAME: ATTRIBUTE", and
// the files that they name besides images. They are as decoded, so a variable,
// a class or the environment that changes a value is seen, and another layout of
// the file is not.
func settings(lab *config.Lab, p *plan.Plan) (map[string]string, []string) {
	w := walker{out: map[string]string{}}
	for _, name := range machines(lab, p) {
		if t := lab.Target(name); t != nil {
			w.begin("target " + name)
			w.walk(reflect.ValueOf(*t), 0)
		}
	}
	for _, c := range pairs(lab, p) {
		k := lab.Kernel(c.kernel)
		if k == nil {
			continue
		}
		w.begin("kernel " + k.Name)
		w.walk(reflect.ValueOf(config.Kernel{Scheduler: k.Scheduler, Release: k.Release, Cmdline: k.Cmdline}), 0)
		if t := lab.Target(c.target); t != nil {
			if i := k.ImageFor(t); i != nil {
				w.path = []string{"image " + i.For}
				w.leaf("cmdline", reflect.ValueOf(i.Cmdline))
			}
		}
	}
	for _, s := range scenarios(lab, p) {
		w.begin(s.name)
		w.walk(reflect.ValueOf(s.Common), 0)
		w.walk(reflect.ValueOf(s.Run), 0)
	}
	slices.Sort(w.files)
	return w.out, slices.Compact(w.files)
}

// machines are the targets of a plan, and those that are peers of their trials.
func machines(lab *config.Lab, p *plan.Plan) []string {
	var out []string
	for _, l := range p.Lanes {
		out = append(out, l.Target)
	}
	for _, s := range scenarios(lab, p) {
		if peer, ok := strings.CutPrefix(s.Common.Peer, "target."); ok {
			out = append(out, peer)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

type scenario struct {
	*config.Scenario
	name string
}

func scenarios(lab *config.Lab, p *plan.Plan) []scenario {
	var out []scenario
	seen := map[string]bool{}
	for _, l := range p.Lanes {
		for _, b := range l.Boots {
			for _, s := range b.Trials {
				name := "workload " + s.Workload + " (" + s.Scenario + ")"
				w := lab.Workload(s.Workload)
				if seen[name] || w == nil {
					continue
				}
				seen[name] = true
				for i := range w.Scenarios {
					if w.Scenarios[i].Name == s.Scenario {
						out = append(out, scenario{&w.Scenarios[i], name})
					}
				}
			}
		}
	}
	return out
}

// walker goes through decoded blocks. Free text and secrets are left out.
type walker struct {
	out   map[string]string
	files []string
	block string
	path  []string
	seen  map[uintptr]bool
}

func (w *walker) begin(block string) { w.block, w.path, w.seen = block, nil, map[uintptr]bool{} }

func (w *walker) walk(v reflect.Value, depth int) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || depth > 6 {
		return
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() && !f.Anonymous || f.Type == reflect.TypeFor[config.Pos]() || slices.Contains([]string{"Note", "Labels", "Name", "Images", "Class", "Held"}, f.Name) {
			continue
		}
		tag := strings.Split(f.Tag.Get("hcl"), ",")
		name := tag[0]
		if name == "" {
			name = words(f.Name)
		}
		if slices.Contains(tag, "path") {
			w.file(name, v.Field(i).String())
		}
		w.field(name, v.Field(i), f.Anonymous, depth)
	}
}

func (w *walker) field(name string, v reflect.Value, anonymous bool, depth int) {
	in := v
	for (in.Kind() == reflect.Pointer || in.Kind() == reflect.Interface) && !in.IsNil() {
		if in.Kind() == reflect.Pointer {
			if w.seen[in.Pointer()] {
				return // a driver that fills several slots is one block
			}
			w.seen[in.Pointer()] = true
		}
		in = in.Elem()
	}
	switch in.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Pointer, reflect.Interface:
	case reflect.Struct:
		if !anonymous {
			w.path = append(w.path, name)
			defer func() { w.path = w.path[:len(w.path)-1] }()
		}
		w.walk(in, depth+1)
	case reflect.Slice, reflect.Array:
		if k := in.Type().Elem().Kind(); k != reflect.Struct && k != reflect.Pointer && k != reflect.Interface {
			w.leaf(name, in)
			return
		}
		for i := range in.Len() {
			w.field(fmt.Sprintf("%s[%d]", name, i), in.Index(i), false, depth+1)
		}
	default:
		w.leaf(name, in)
	}
}

// leaf notes a value that is not the zero value. Of a password that stands in
// the environment or a file only the place is a setting.
func (w *walker) leaf(name string, v reflect.Value) {
	for _, secret := range []string{"password", "passphrase", "passwd", "token", "secret"} {
		if strings.HasSuffix(name, secret) {
			return
		}
	}
	if v.IsZero() {
		return
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%v", v.Interface())) // maps are printed in order
	w.out[w.block+": "+strings.Join(append(slices.Clone(w.path), name), ".")] = hex.EncodeToString(sum[:2])
}

// file notes a file that a driver or a workload reads, unless it holds a secret.
func (w *walker) file(name, path string) {
	for _, not := range []string{"key", "password", "known_hosts"} { // secret, or written to by others
		if strings.Contains(name, not) && name != "host_key" {
			return
		}
	}
	if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
		w.files = append(w.files, path)
	}
}

// words is a field's name as an attribute's: KnownGood is known_good.
func words(field string) string {
	var b strings.Builder
	for i, c := range field {
		if i > 0 && c >= 'A' && c <= 'Z' && field[i-1] >= 'a' && field[i-1] <= 'z' {
			b.WriteByte('_')
		}
		b.WriteRune(c)
	}
	return strings.ToLower(b.String())
}
