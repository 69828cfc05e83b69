package targetstest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// children lists the pids whose parent is pid.
func children(pid int) []int {
	var found []int
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		// "pid (comm) state ppid …": comm may hold spaces and parentheses.
		_, rest, ok := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		var child int
		if _, err := fmt.Sscan(string(b), &child); err == nil {
			found = append(found, child)
		}
	}
	return found
}

// Descendants lists the pids below pid, deepest first.
func Descendants(pid int) []int {
	var all []int
	for _, c := range children(pid) {
		all = append(all, Descendants(c)...)
		all = append(all, c)
	}
	return all
}
