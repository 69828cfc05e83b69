package sshconn

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// systemSSH is the system's client for d, without configuration.
func systemSSH(b *testing.B, d *targetstest.Daemon, extra ...string) func() {
	ssh := targetstest.Tool(b, "ssh")
	args := append([]string{"-F", "none", "-i", d.SSH.Key, "-o", "IdentitiesOnly=yes", "-o", "UserKnownHostsFile=" + d.SSH.KnownHosts,
		"-o", "BatchMode=yes", "-p", fmt.Sprint(d.SSH.Port)}, extra...)
	args = append(args, "127.0.0.1", "true")
	return func() {
		if out, err := exec.Command(ssh, args...).CombinedOutput(); err != nil {
			b.Fatalf("ssh: %v\n%s", err, out)
		}
	}
}

// BenchmarkAgainstSSH runs both clients in turn, so that the machine's load
// falls on both, and reports the ratio of their times (ours / the system's).
func BenchmarkAgainstSSH(b *testing.B) {
	d := targetstest.SSHD(b)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dialer := New(zap.NewNop())
	open := func() targets.Conn {
		c, err := dialer.Dial(ctx, d.SSH, targets.DialOptions{})
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	run := func(c targets.Conn) {
		if e, err := c.Run(ctx, targets.Cmd{Argv: []string{"true"}}); err != nil || !e.OK() {
			b.Fatal(e, err)
		}
	}
	connect := func() {
		c := open()
		run(c)
		c.Close()
	}
	b.Run("connect and run", func(b *testing.B) { compare(b, connect, systemSSH(b, d)) })
	b.Run("run on an open connection", func(b *testing.B) {
		c := open()
		defer c.Close()
		control := d.Dir + "/control"
		master := systemSSH(b, d, "-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-S", control)
		master()
		defer func() {
			_ = exec.Command(targetstest.Tool(b, "ssh"), "-F", "none", "-S", control, "-O", "exit", "127.0.0.1").Run() // it also ends by itself
		}()
		compare(b, func() { run(c) }, master)
	})
}

func compare(b *testing.B, ours, theirs func()) {
	var a, z time.Duration
	for b.Loop() {
		start := time.Now()
		ours()
		middle := time.Now()
		theirs()
		a, z = a+middle.Sub(start), z+time.Since(middle)
	}
	n := float64(b.N)
	b.ReportMetric(float64(a.Milliseconds())/n, "ours-ms")
	b.ReportMetric(float64(z.Milliseconds())/n, "ssh-ms")
	b.ReportMetric(a.Seconds()/z.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}
