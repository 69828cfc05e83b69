package tftp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kernsweep/targets/targetstest"
)

// hpa starts tftpd-hpa on 127.0.0.1 for one folder.
func hpa(b *testing.B, dir string) netip.AddrPort {
	l, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := l.LocalAddr().(*net.UDPAddr).AddrPort()
	l.Close()
	c := exec.Command(targetstest.Tool(b, "in.tftpd", "/usr/sbin/in.tftpd"), "-L", "-a", addr.String(), "-u", "root", "-s", dir)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
	})
	for range 100 { // it says nothing when it is ready; a request that is lost is asked again
		cl := dial(b, addr)
		cl.ask("none")
		_, _, err := cl.nextWithin(100 * time.Millisecond)
		cl.close()
		if ne, ok := err.(net.Error); !ok || !ne.Timeout() {
			return addr
		}
	}
	b.Fatal("in.tftpd does not answer")
	return addr
}

// benchFile is the file that this binary serves when it is started as a server.
const benchFile = "KERNSWEEP_TEST_TFTP_FILE"

// TestServeForBenchmark is our server in a process of its own, as tftpd-hpa is;
// in a run of the tests it serves nothing and ends.
func TestServeForBenchmark(t *testing.T) {
	path := os.Getenv(benchFile)
	if path == "" {
		return
	}
	s := serve(t, map[string]string{"k": path})
	fmt.Println(s.Addr)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the benchmark ends
}

// ours starts that process.
func ours(b *testing.B, path string) netip.AddrPort {
	c := exec.Command(os.Args[0], "-test.run=^TestServeForBenchmark$")
	c.Env = append(os.Environ(), benchFile+"="+path)
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	addr, err := netip.ParseAddrPort(strings.TrimSpace(line))
	if err != nil {
		b.Fatal(err)
	}
	return addr
}

// fetch times n clients that fetch a file at once.
func fetch(b *testing.B, addr netip.AddrPort, n int, options ...option) time.Duration {
	var wg sync.WaitGroup
	begin := time.Now()
	for range n {
		wg.Go(func() {
			c := dial(b, addr)
			defer c.close()
			if _, err := c.get("k", options...); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	return time.Since(begin)
}

// Both servers side by side, in turn, each in processes of its own. "times-hpa" is our time over tftpd-hpa's:
// 1.5 is the most that it may be.
func BenchmarkAgainstTftpdHpa(b *testing.B) {
	path := file(b, "k", 4_000_000)
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 64} {
		for _, o := range []option{{}, {"blksize", "1432"}} {
			b.Run(fmt.Sprintf("clients=%d/%s%s", n, o.name, o.value), func(b *testing.B) {
				own, theirs := ours(b, path), hpa(b, filepath.Dir(path))
				var sum [2]time.Duration
				for b.Loop() {
					sum[0] += fetch(b, own, n, o)
					sum[1] += fetch(b, theirs, n, o)
				}
				rate := float64(4*n*b.N) / sum[0].Seconds()
				b.ReportMetric(float64(sum[0])/float64(sum[1]), "times-hpa")
				b.ReportMetric(rate, "MB/s-ours")
				b.ReportMetric(rate*float64(sum[0])/float64(sum[1]), "MB/s-hpa")
			})
		}
	}
}
