package config

import (
	"reflect"
	"strings"
	"testing"
)

// TestReference: every attribute that config, a driver or a workload takes says
// what it is for.
func TestReference(t *testing.T) {
	text := Reference()
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, undocumented) {
			t.Errorf("an attribute without a doc tag: %s", line)
		}
		if len([]rune(line)) > referenceWidth {
			t.Errorf("a line too long for a terminal: %s", line)
		}
	}
	for _, want := range []string{`target "NAME"`, "host (text): ", `boot "none"`, "command, http, ipmi, ", "kernels (list of kernel.NAME): ", "functions: abs"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}

// TestDriverFields: every tagged field of every driver and workload has a type
// that a value can be decoded into.
func TestDriverFields(t *testing.T) {
	d := allDrivers()
	all := map[string]any{}
	for n, f := range d.boot {
		all["boot "+n] = f()
	}
	for n, f := range d.power {
		all["power "+n] = f()
	}
	for n, f := range d.console {
		all["console "+n] = f()
	}
	for n, f := range d.workloads {
		all["workload "+n] = f()
	}
	for name, v := range all {
		for _, f := range fieldsOf(reflect.TypeOf(v).Elem()) {
			switch k := f.typ.Kind(); {
			case f.block && k == reflect.Struct:
			case k == reflect.String, k == reflect.Bool, k == reflect.Int, k == reflect.Int64, k == reflect.Float64:
			case f.typ == reflect.TypeOf([]string{}), f.typ == reflect.TypeOf([]int{}), f.typ == reflect.TypeOf(map[string]string{}):
			default:
				t.Errorf("%s: %q has the type %s", name, f.name, f.typ)
			}
		}
	}
}

// TestPlaceText: an attribute that many drivers have is not told with all of them.
func TestPlaceText(t *testing.T) {
	for _, c := range []struct {
		places []string
		want   string
	}{
		{[]string{`boot "pxe"`, `power "wol"`}, `boot "pxe" or power "wol"`},
		{[]string{`console "tcp"`, `console "telnet"`, "network", `power "ipmi"`, `power "snmp"`}, "a console block or a network block or a power block"},
		{[]string{"ssh", "target"}, "a target block"},
	} {
		if got := placeText(c.places); got != c.want {
			t.Errorf("%v: %q, want %q", c.places, got, c.want)
		}
	}
}
