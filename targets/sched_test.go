package targets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// evidence makes what a probe of a release with these files would find.
func evidence(release string, sched map[string]string, config, dmesg string) *Evidence {
	ev := &Evidence{Files: map[string][]byte{
		"uname": []byte("Linux\nh\n" + release + "\n#1\nx86_64\n"), "dmesg": []byte(dmesg), "config": []byte(config),
	}, Sched: sched, Missing: map[string]string{}}
	ev.readConfig()
	return ev
}

const (
	sysctl = "/proc/sys/kernel/"
	debug  = "/sys/kernel/debug/sched/"
)

func TestDetectScheduler(t *testing.T) {
	type m = map[string]string
	for _, c := range []struct {
		name, release string
		sched         m
		config, dmesg string
		want, detail  string
		conflicts     int
	}{
		{"debian 6.1", "6.1.0-49-cloud-amd64", m{sysctl + "sched_child_runs_first": "0"}, "", "", "cfs", "", 0},
		{"debian 6.12", "6.12.9+bpo-cloud-amd64", m{}, "", "", "eevdf", "", 0},
		{"cfs sysctl", "5.10.0", m{sysctl + "sched_min_granularity_ns": "3000000"}, "", "", "cfs", "", 0},
		{"cfs debugfs", "6.1.0", m{debug + "latency_ns": "6000000"}, "", "", "cfs", "", 0},
		{"early cfs", "2.6.21.1-cfs", m{sysctl + "sched_granularity_ns": "6000000"}, "", "", "cfs", "early patch", 0},
		{"o1", "2.6.22.19", m{}, "", "", "o1", "", 0},
		{"2.4", "2.4.37", m{}, "", "", "o1", "", 0},
		{"eevdf", "6.18.1", m{debug + "base_slice_ns": "1400000"}, "", "", "eevdf", "", 0},
		{"eevdf backported", "6.1.0-x", m{debug + "base_slice_ns": "1400000", debug + "features": "PLACE_LAG RUN_TO_PARITY"}, "", "", "eevdf", "", 0},
		{"sd", "2.6.22-sd", m{sysctl + "rr_interval": "10"}, "", "", "sd", "", 0},
		{"bfs", "2.6.31.5", m{sysctl + "rr_interval": "6", sysctl + "iso_cpu": "70"}, "", "", "bfs", "", 0},
		{"bfs with interactive", "4.7.0", m{sysctl + "rr_interval": "6", sysctl + "iso_cpu": "70", sysctl + "interactive": "1"}, "", "", "bfs", "", 0},
		{"bfs banner", "4.9.0", m{sysctl + "rr_interval": "6", sysctl + "iso_cpu": "70"}, "", "[    0.1] BFS CPU scheduler v0.512 by Con Kolivas.\n", "bfs", "v0.512", 0},
		{"muqss", "5.12.0-ck1", m{sysctl + "rr_interval": "6", sysctl + "iso_cpu": "70", sysctl + "interactive": "1"}, "", "[ 0.1] MuQSS CPU scheduler v0.193 by Con Kolivas.\n", "muqss", "v0.193", 0},
		{"bmq", "6.1.0", m{sysctl + "yield_type": "1"}, "CONFIG_SCHED_ALT=y\nCONFIG_SCHED_BMQ=y\n", "sched/bmq: BMQ CPU Scheduler v6.1-r0 by Alfred Chen.\n", "bmq", "v6.1-r0", 0},
		{"pds", "6.1.0", m{}, "CONFIG_SCHED_PDS=y\n", "", "pds", "", 0},
		{"pds-mq", "4.20.0", m{}, "", "PDS-mq CPU Scheduler 0.99n by Alfred Chen.\n", "pds", "0.99n", 0},
		{"bore on", "6.12.1-cachyos-bore", m{sysctl + "sched_bore": "1", debug + "base_slice_ns": "2800000"}, "", "", "bore", "", 0},
		{"bore off", "6.12.1-cachyos-bore", m{sysctl + "sched_bore": "0", debug + "base_slice_ns": "2800000"}, "CONFIG_SCHED_BORE=y\n", "", "eevdf", "", 1},
		{"bore off, no debugfs", "6.12.1", m{sysctl + "sched_bore": "0"}, "CONFIG_SCHED_BORE=y\n", "", "eevdf", "", 0},
		{"sched_ext", "6.12.1", m{"/sys/kernel/sched_ext/state": "enabled", "/sys/kernel/sched_ext/root/ops": "lavd_1.0.4", debug + "base_slice_ns": "1"}, "", "", "sched_ext", "lavd_1.0.4", 0},
		{"sched_ext idle", "6.12.1", m{"/sys/kernel/sched_ext/state": "disabled"}, "CONFIG_SCHED_CLASS_EXT=y\n", "", "eevdf", "", 0},
		{"config only", "4.4.0", m{}, "CONFIG_SCHED_BFS=y\n", "", "bfs", "", 0},
		{"a name is a hint", "6.1.0-bfs", m{sysctl + "sched_latency_ns": "1"}, "", "", "cfs", "", 1},
		{"unknown", "", m{}, "", "", "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := DetectScheduler(evidence(c.release, c.sched, c.config, c.dmesg))
			if s.Name != c.want || s.Detail != c.detail || len(s.Conflicts) != c.conflicts {
				t.Errorf("%+v, want %q %q", s, c.want, c.detail)
			}
			if s.Name != "" && len(s.Evidence) == 0 {
				t.Error("no evidence")
			}
		})
	}
}

func TestProgramFromELF(t *testing.T) {
	for dir, want := range map[string]Program{
		"t1": {"mips", 0, true}, "t2": {"mipsle", 0, true}, "t3": {"arm", 5, false}, "t4": {"arm", 7, false},
		"t5": {"arm64", 0, false}, "t6": {"arm", 7, false}, "t7": {"mips64", 0, true},
	} {
		head, err := os.ReadFile(filepath.Join("testdata/elf", dir, "elf20.bin"))
		if err != nil {
			t.Fatal(err)
		}
		machine, err := os.ReadFile(filepath.Join("testdata/elf", dir, "uname_m.txt"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ProgramFromELF(head, strings.TrimSpace(string(machine)))
		if err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", dir, got, err, want)
		}
	}
	for _, bad := range []string{"", "#!/bin/sh", "\x7fELF"} {
		if p, err := ProgramFromELF([]byte(bad), "mips"); err == nil {
			t.Errorf("%q: %+v", bad, p)
		}
	}
}

func TestPersistent(t *testing.T) {
	for name, want := range map[string]string{
		"mounts_tmpfs.txt": "changes will be lost at the next boot (overlay on tmpfs)",
		"mounts_flash.txt": "",
		"mounts_ro.txt":    "the root file system (squashfs) is read-only",
	} {
		b, err := os.ReadFile(filepath.Join("testdata/mounts", name))
		if err != nil {
			t.Fatal(err)
		}
		ev := &Evidence{Files: map[string][]byte{"mounts": b, "df": []byte("Filesystem 1K-blocks Used Available Use% Mounted on\ntmpfs 15000 1 14999 0% /tmp\n")}}
		why, ok := ev.Persistent()
		if why != want || ok != (want == "") {
			t.Errorf("%s: %q %v", name, why, ok)
		}
		for _, m := range ev.Mounts() {
			if m.Path == "/tmp" && (m.FreeKB != 14999 || !m.Writable()) || m.Path == "/rom" && m.Writable() {
				t.Errorf("%s: %+v", name, m)
			}
		}
	}
}

func TestCPUs(t *testing.T) {
	for in, want := range map[string]int{"0-1\n": 2, "0": 1, "0-3,6,8-9": 7} {
		if n := (&Evidence{Files: map[string][]byte{"online": []byte(in)}}).cpus(); n != want {
			t.Errorf("%q: %d, want %d", in, n, want)
		}
	}
	ev := &Evidence{Files: map[string][]byte{"cpuinfo": []byte("system type\t: Atheros\nprocessor\t\t: 0\n")}}
	if n := ev.cpus(); n != 1 {
		t.Errorf("from cpuinfo: %d", n)
	}
}
