package orchestrator

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/orchestrator/config"
	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/workloads"
	"kernsweep/workloads/deploy"
	"kernsweep/workloads/wire"
)

// BenchmarkAgentOnGuest prints what the agent costs a MIPS guest when it samples
// once a second: its resident memory, its share of the guest's CPU while it
// samples, and what starting and ending it takes on top. The limits of the design are 4 MB and 1 %.
func BenchmarkAgentOnGuest(b *testing.B) {
	for target, kernel := range map[string]string{"malta": "cfs_61", "malta32": "tiny_61", "maltabe": "tiny_61"} {
		b.Run(target, func(b *testing.B) {
			for b.Loop() {
				agentOnGuest(b, target, kernel)
			}
		})
	}
}

func agentOnGuest(b *testing.B, target, kernel string) {
	lab, diags := config.Load("../testbeds.hcl", nil, os.LookupEnv)
	if diags.HasErrors() {
		b.Fatal(diags)
	}
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	conf := lab.Target(target)
	k, _ := lab.Kernel(kernel).For(conf)
	for _, f := range imageFiles(k.Image) {
		if why := unreadable(f); why != "" {
			b.Fatalf("%s: %s; it is made by scripts/lab (--mips for the small guests)", f, why)
		}
	}
	t := conf.Target
	t.Dial = sshconn.New(zap.NewNop()).Dial
	defer t.Boot.(targets.Closer).Close()
	defer t.StopConsole()
	conn, rec, err := targets.Boot(ctx, &t, k, targets.BootLog{})
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	agent, err := deploy.Install(ctx, conn, deploy.Options{Arch: conf.Arch, Release: rec.Release})
	if err != nil {
		b.Fatal(err)
	}
	// Two lengths tell what a second costs from what a start costs.
	const short, long = 10, 40
	measure := func(seconds int) (rssKB, cpuUS float64) {
		dir := b.TempDir()
		err := agent.Run(ctx, workloads.Task{Argv: []string{"exec", "--", "sleep", strconv.Itoa(seconds)}, Sample: time.Second, Deadline: 3 * time.Minute, Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		f, err := os.Open(filepath.Join(dir, "spool"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		s, err := wire.Read(f)
		if err != nil {
			b.Fatal(err)
		}
		rss, err1 := strconv.ParseFloat(s.End["rss_kb"], 64)
		cpu, err2 := strconv.ParseFloat(s.End["cpu_us"], 64)
		if err1 != nil || err2 != nil {
			b.Fatalf("end record %v", s.End)
		}
		return rss, cpu
	}
	_, less := measure(short)
	rss, more := measure(long)
	perSecond := (more - less) / (long - short)
	b.ReportMetric(rss, "rss-kB")
	b.ReportMetric(perSecond/1e6*100, "cpu-%")
	b.ReportMetric((less-perSecond*short)/1000, "ms-start-and-end")
}
