package boot

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kernsweep/targets"
)

// cleanTime bounds the removal of our own files after something failed.
const cleanTime = 20 * time.Second

// shell runs a script with arguments $1… on the target and returns what it
// printed. A status other than 0 is an error with the end of what it complained.
func shell(ctx context.Context, conn targets.Conn, script string, args ...string) (string, error) {
	var out, said strings.Builder
	e, err := conn.Run(ctx, targets.Cmd{
		Argv: append([]string{"sh", "-c", "PATH=$PATH:/sbin:/usr/sbin\n" + script, "sh"}, args...), Stdout: &out, Stderr: &said,
	})
	if err != nil {
		return "", err
	}
	if !e.OK() {
		why := strings.TrimSpace(said.String())
		if why == "" {
			why = strings.TrimSpace(out.String())
		}
		if len(why) > 500 {
			why = "…" + why[len(why)-500:]
		}
		return "", fmt.Errorf("a command there %s: %s", e, why)
	}
	return out.String(), nil
}
