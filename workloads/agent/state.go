package agent

import (
	"strings"
	"syscall"

	"kernsweep/workloads/wire"
)

const cpuDir = "/sys/devices/system/cpu/"

// writeState spools what two looks tell, one before and one after the task: the
// scheduler's own account, and for each CPU its frequencies and how often it was
// throttled. Most of it is in files that some
// kernels lack, and on a machine of 100 CPUs they are a few hundred.
func writeState(w *wire.Writer) {
	b := make([]byte, 0, 4<<10)
	b = appendState(b, "/proc/schedstat", "domain") // lines of topology, most of the file
	for _, cpu := range cpuDirs() {
		for _, f := range [...]string{"cpufreq/scaling_governor", "cpufreq/scaling_min_freq", "cpufreq/scaling_max_freq",
			"cpufreq/scaling_cur_freq", "cpufreq/stats/time_in_state",
			"thermal_throttle/core_throttle_count", "thermal_throttle/package_throttle_count"} {
			b = appendState(b, cpuDir+cpu+"/"+f, "")
		}
	}
	w.Write(wire.TypeState, Now(), "", b) // a full spool is noted at the end
}

// appendState appends PATH=CONTENT, with ";" for line ends and without lines that
// begin with drop; nothing when the file cannot be read.
func appendState(b []byte, path, drop string) []byte {
	text, err := readFile(path)
	if err != nil {
		return b
	}
	b = append(b, path...)
	sep := byte('=')
	for _, ln := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if drop == "" || !strings.HasPrefix(ln, drop) {
			b = append(append(b, sep), ln...)
			sep = ';'
		}
	}
	return append(b, '\n')
}

// cpuDirs are the names of the CPUs that have files: "cpu0", "cpu1", ….
func cpuDirs() []string {
	var cpus []string
	for _, name := range listDir(cpuDir) {
		if n := strings.TrimPrefix(name, "cpu"); n != name && n != "" && n[0] >= '0' && n[0] <= '9' {
			cpus = append(cpus, name)
		}
	}
	return cpus
}

// mostFreqs bounds what frequencies cost a sample. Heat slows down a whole
// package, so that a few CPUs far apart show it.
const mostFreqs = 4

// freqFile is one CPU whose frequency is sampled.
type freqFile struct {
	name []byte // "cpu0 "
	fd   int
}

// openFreqs opens the frequencies that have to be sampled: where the kernel keeps
// time_in_state, the two looks of writeState tell all, free of cost. Elsewhere a
// sample costs an open file and a read of some microseconds for each CPU; x86
// kernels from 4.13 to 5.17 also interrupt that CPU once, and may sleep 10 ms
// (arch/x86/kernel/cpu/aperfmperf.c). Without cpufreq, as on MIPS, there is none.
func openFreqs() []freqFile {
	cpus := cpuDirs()
	var all []freqFile
	for i := range min(mostFreqs, len(cpus)) {
		cpu := cpus[i*len(cpus)/min(mostFreqs, len(cpus))]
		var st syscall.Stat_t
		if syscall.Stat(cpuDir+cpu+"/cpufreq/stats/time_in_state", &st) == nil {
			continue
		}
		fd, err := syscall.Open(cpuDir+cpu+"/cpufreq/scaling_cur_freq", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err == nil {
			all = append(all, freqFile{name: []byte(cpu + " "), fd: fd})
		}
	}
	return all
}

// readFreqs appends a line "cpuN kHz" for each CPU that tells.
func (s *sampler) readFreqs() {
	for i := range s.freqs {
		f := &s.freqs[i]
		if rewind(f.fd) != 0 {
			continue
		}
		// The file ends with its line.
		if n, err := readNow(f.fd, s.chunk); err == 0 && n > 0 {
			s.out = append(append(s.out, f.name...), s.chunk[:n]...)
		}
	}
}
