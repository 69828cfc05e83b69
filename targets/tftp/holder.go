package tftp

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// holder names the process that holds a UDP port, " by NAME (process N)", as far
// as Linux's /proc tells this user; else "".
func holder(port uint16) string {
	inodes := map[string]bool{}
	for _, file := range []string{"/proc/net/udp", "/proc/net/udp6"} {
		readInodes(file, port, inodes)
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, l := range links {
		to, err := os.Readlink(l)
		inode, ok := strings.CutPrefix(to, "socket:[")
		if err != nil || !ok || !inodes[strings.TrimSuffix(inode, "]")] {
			continue
		}
		pid := strings.Split(l, "/")[2]
		name, err := os.ReadFile("/proc/" + pid + "/comm")
		if err != nil {
			continue
		}
		return fmt.Sprintf(" by %s (process %s)", strings.TrimSpace(string(name)), pid)
	}
	return ""
}

// readInodes adds the sockets of a port; the columns are those of proc(5).
func readInodes(file string, port uint16, to map[string]bool) {
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		col := strings.Fields(s.Text())
		if len(col) > 9 && strings.HasSuffix(col[1], fmt.Sprintf(":%04X", port)) {
			to[col[9]] = true
		}
	}
}
