package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kernsweep/targets"
)

// field of a role, "" without.
func (t *table) field(f []string, r role) string {
	if i := t.at[r]; i >= 0 {
		return strings.TrimSpace(f[i])
	}
	return ""
}

func (t *table) kernel(f []string) (string, error) {
	k := cmp.Or(t.field(f, kernelCol), t.field(f, variantCol), t.field(f, schedulerCol), t.m.files[t.file].Kernel, t.m.o.Kernel)
	if t.several {
		k += " " + t.builtAs(f)
	}
	if err := nameable(k); err != nil {
		return "", fmt.Errorf("the kernel's name: %w", err)
	}
	if s := t.field(f, schedulerCol); s != "" {
		if word, detail, _ := strings.Cut(s, " "); slices.Contains(schedulers(), strings.ToLower(word)) {
			t.m.tell(k, told{scheduler: strings.ToLower(word), detail: detail, by: t.m.files[t.file].Name})
		}
	}
	return k, nil
}

// builtAs tells apart what a table calls one kernel.
func (t *table) builtAs(f []string) string {
	return strings.TrimSpace(t.field(f, variantCol) + " " + t.field(f, schedulerCol))
}

// sameNames says whether a kernel of the table stands beside several variants or
// schedulers, so that its own name does not tell what was compared.
func (t *table) sameNames(text string) bool {
	if t.at[kernelCol] < 0 || t.at[variantCol] < 0 && t.at[schedulerCol] < 0 {
		return false
	}
	seen := map[string]string{}
	next, _ := rowsOf(text)
	for n := 0; ; n++ {
		f, _, err := next()
		if err != nil {
			return false // the end, or an error that the second reading names
		}
		if n == 0 || len(f) < len(t.head) {
			continue
		}
		k, as := t.field(f, kernelCol), t.builtAs(f)
		if was, ok := seen[k]; ok && was != as {
			return true
		} else if !ok {
			seen[strings.Clone(k)] = strings.Clone(as)
		}
	}
}

// schedulers are the names that targets.Scheduler knows.
func schedulers() []string {
	return []string{"cfs", "eevdf", "bfs", "muqss", "bore", "sd", "o1", "pds", "bmq", "sched_ext"}
}

// tell keeps what a file says of a kernel, the first word of each.
func (m *Import) tell(kernel string, x told) {
	was := m.told[kernel]
	was.release = cmp.Or(was.release, x.release)
	if was.scheduler == "" {
		was.scheduler, was.detail = x.scheduler, x.detail
	}
	was.by = cmp.Or(was.by, x.by)
	m.told[kernel] = was
}

func (x told) schedulerFound() targets.Scheduler {
	if x.scheduler == "" {
		return targets.Scheduler{}
	}
	return targets.Scheduler{Name: x.scheduler, Detail: x.detail, Evidence: []string{"as " + shown(x.by) + " tells; nobody probed it"}}
}
