package deploy

import (
	"strings"
	"testing"

	"kernsweep/workloads/wire"
)

func TestIntake(t *testing.T) {
	spool := wire.Magic + "out 1 6\nready\n\n"
	for in, want := range map[string]string{
		"ready\nended ok\n" + spool:       "ready,ended ok",
		"ended timeout: too\n" + spool:    "ended timeout: too",
		"ready\n" + spool:                 "ready",
		spool:                             "",
		"ended failed: no iperf\nrubbish": "ended failed: no iperf",
	} {
		for _, size := range []int{1, 3, len(in)} {
			var out strings.Builder
			var said []string
			i := &intake{w: &out, ready: func() { said = append(said, "ready") }, ended: func(how string) { said = append(said, "ended "+how) }}
			for b := []byte(in); len(b) > 0; {
				n := min(size, len(b))
				if _, err := i.Write(b[:n]); err != nil {
					t.Fatal(err)
				}
				b = b[n:]
			}
			if got := strings.Join(said, ","); got != want {
				t.Errorf("%q by %d bytes: said %q, want %q", in, size, got, want)
			}
			if rest := in[strings.LastIndex(in, out.String()):]; out.Len() == 0 || rest != out.String() {
				t.Errorf("%q by %d bytes: kept %q", in, size, out.String())
			}
		}
	}
}
