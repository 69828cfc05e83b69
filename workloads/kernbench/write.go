package kernbench

import (
	"bufio"
	"fmt"
	"io"
)

// Write prints l in the format of kernbench.log. It has no word for a missing
// figure but "No data".
func Write(w io.Writer, l Log) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\n%s\n", l.Date, l.Release)
	for _, level := range l.Levels {
		fmt.Fprintf(out, "Average %s Run (std deviation):\n", level.Name)
		for m := range metrics {
			switch f := level.Figures[m]; {
			case f.Missing != "":
				fmt.Fprintf(out, "%s No data\n", m)
			case f.HasSD:
				fmt.Fprintf(out, "%s %.6g (%.6g)\n", m, f.Mean, f.SD)
			default:
				fmt.Fprintf(out, "%s %.6f\n", m, f.Mean)
			}
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}
