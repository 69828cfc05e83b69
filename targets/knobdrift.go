package targets

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// Drifted reads a knob, and those set with it, once more and says in a sentence
// each which are no longer as they were set. One that cannot be read is not
// judged: restoring it will tell.
func (k Knob) Drifted(ctx context.Context, conn Conn) []string {
	var out []string
	for _, one := range append([]Knob{k}, k.Also...) {
		if one.Path == "" {
			continue
		}
		var now bytes.Buffer
		e, err := conn.Run(ctx, Cmd{Argv: []string{"cat", one.Path}, Stdout: limited(&now, 1<<16)})
		if got := strings.TrimSpace(now.String()); err == nil && e.OK() && got != one.Got {
			out = append(out, fmt.Sprintf("%s was set to %s and is %.100s at the end", one.Path, one.Got, got))
		}
	}
	return out
}
