package targets

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCPUFreq(t *testing.T) {
	const cpu = "/sys/devices/system/cpu/"
	section := cpu + "cpu0/cpufreq/scaling_governor=performance\n" + cpu + "cpu1/cpufreq/scaling_governor=ondemand\n" +
		cpu + "cpu2/cpufreq/scaling_governor=performance\n" +
		cpu + "cpu0/cpufreq/scaling_max_freq=1400000\n" + cpu + "cpu1/cpufreq/scaling_max_freq=1400000\n" +
		cpu + "cpu0/cpufreq/scaling_cur_freq=900000\n" + cpu + "cpu1/cpufreq/scaling_cur_freq=<unknown>\n" +
		cpu + "cpufreq/boost=0\n" + cpu + "smt/active=1\n"
	var r BootRecord
	(&Evidence{Files: map[string][]byte{"cpufreq": []byte(section)}}).Fill(&r)
	want := map[string]string{
		"governor": "ondemand (1 CPUs), performance (2 CPUs)", "max_freq": "1400000", "cur_freq": "900000", "boost": "0", "smt": "1",
	}
	if d := cmp.Diff(want, r.CPUFreq); d != "" {
		t.Error(d)
	}
	if got := cpuFreq([]byte("\n")); got != nil {
		t.Errorf("a kernel without cpufreq: %v", got)
	}
}
