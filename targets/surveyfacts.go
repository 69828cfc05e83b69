package targets

import (
	"fmt"
	"path"
	"strings"
)

// Fact is one line of a survey.
type Fact struct {
	Name string `json:"name"`
	Found
}

// Facts are the survey in the order in which a person reads it.
func (s *Survey) Facts() []Fact {
	r := &s.Running
	version := func(tool string) Found {
		if v := r.Tools[tool]; v != "" {
			return Found{Value: v}
		}
		if s.Cut != "" && len(r.Tools) == 0 {
			return Found{Missing: s.Cut}
		}
		return Found{Missing: "no program " + tool + " there"}
	}
	return []Fact{
		{"hostname", text(s.Hostname)},
		{"login", s.login()},
		{"architecture", s.Arch},
		{"byte order", s.ByteOrder},
		{"float", s.Float},
		{"CPUs", s.cpuText()},
		{"memory", s.memoryText()},
		{"kernel", text(strings.TrimSpace(r.Release + " " + r.Version))},
		{"scheduler", Found{Value: strings.TrimSpace(r.Scheduler.Name + " " + r.Scheduler.Detail), Evidence: strings.Join(r.Scheduler.Evidence, "; "), Missing: "nothing tells"}},
		{"its knobs", s.knobText()},
		{"boot loader", s.Loader()},
		{"places", s.placeText()},
		{"SSH server", text(s.Server.Version)},
		{"host key", text(s.Server.HostKey)},
		{"SFTP", s.sftpText()},
		{"iperf2", version("iperf")},
		{"iperf3", version("iperf3")},
		{"clock", s.Clock},
		{"distribution", s.Distro},
		{"BusyBox", s.BusyBox},
		{"watchdog", s.Watchdog},
	}
}

func text(s string) Found { return Found{Value: s} }

func (s *Survey) login() Found {
	switch s.UID {
	case "":
		return Found{Missing: "id -u says nothing"}
	case "0":
		return Found{Value: "root", Evidence: "uid 0"}
	}
	return Found{Value: "uid " + s.UID + ", not root"}
}

func (s *Survey) cpuText() Found {
	t := s.Topology
	switch {
	case s.Running.CPUs == 0:
		return Found{Missing: "neither /sys nor /proc/cpuinfo tells"}
	case t.Threads == 0:
		return Found{Value: fmt.Sprint(s.Running.CPUs), Evidence: "/proc/cpuinfo; the kernel tells no topology"}
	}
	nodes := ""
	if t.Nodes > 0 {
		nodes = fmt.Sprintf(", %d NUMA nodes", t.Nodes)
	}
	return Found{Value: fmt.Sprintf("%d: sockets %d, cores %d, threads %d%s", s.Running.CPUs, t.Sockets, t.Cores, t.Threads, nodes),
		Evidence: "/sys/devices/system/cpu"}
}

func (s *Survey) memoryText() Found {
	if s.Running.MemoryKB == 0 {
		return Found{Missing: "/proc/meminfo is not readable"}
	}
	return Found{Value: fmt.Sprintf("%d MiB", s.Running.MemoryKB/1024)}
}

func (s *Survey) knobText() Found {
	if len(s.Knobs) == 0 {
		return Found{Missing: "none in /proc/sys/kernel and /sys/kernel/debug/sched"}
	}
	var names []string
	for _, k := range s.Knobs {
		names = append(names, path.Base(k))
	}
	return Found{Value: strings.Join(names, ", ")}
}

func (s *Survey) sftpText() Found {
	if s.Server.NoSFTP == "" {
		return Found{Value: "yes"}
	}
	return Found{Value: "no, files go over a plain channel", Evidence: s.Server.NoSFTP}
}

// placeText lists the folders that programs can be put into, those of one file
// system together, and as evidence those that not.
func (s *Survey) placeText() Found {
	var order, bad []string
	good := map[string][]string{}
	for _, p := range s.Places {
		if !p.Usable() {
			bad = append(bad, p.Dir+" ("+p.fault()+")")
			continue
		}
		what := p.room()
		if good[what] == nil {
			order = append(order, what)
		}
		good[what] = append(good[what], p.Dir)
	}
	var f Found
	for _, what := range order {
		f.Value += "; " + strings.Join(good[what], " ") + ": " + what
	}
	f.Value, f.Evidence = strings.TrimPrefix(f.Value, "; "), "a program written and run there, /proc/mounts, df"
	switch {
	case len(s.Places) == 0 && s.Cut != "":
		f.Missing = s.Cut
	case len(s.Places) == 0:
		f.Missing = "none was tried"
	case len(order) == 0:
		f.Missing = "no folder takes a program and runs it: " + strings.Join(bad, ", ")
	case len(bad) > 0:
		f.Evidence += "; not: " + strings.Join(bad, ", ")
	}
	return f
}

// room says how much is free, and whether it stays.
func (p Place) room() string {
	free := "room unknown"
	if p.FreeKB >= 0 {
		free = fmt.Sprintf("%d MiB free", p.FreeKB/1024)
	}
	kept := map[string]string{"yes": "survives a reboot", "no": "gone after a reboot", "": "may be gone after a reboot"}[p.Survives]
	return fmt.Sprintf("%s, %s (%s)", free, kept, p.Why)
}

func (p Place) fault() string {
	switch {
	case !p.Write && p.FreeKB == 0:
		return "full"
	case !p.Write:
		return "not writable"
	case !p.Exec:
		return "nothing can be run there"
	}
	return fmt.Sprintf("only %d KiB free", p.FreeKB)
}
