// Package plural counts things in words that people read: 1 boot, 3 boots.
package plural

import "strconv"

// Of is n and what is counted, which takes an s where there is not just one.
func Of(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
