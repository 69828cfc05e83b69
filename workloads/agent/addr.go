package agent

import (
	"strconv"
	"strings"
	"syscall"
)

// parseAddr reads ADDRESS:PORT, with [ADDRESS] for IPv6; names are not looked up.
func parseAddr(s string) (syscall.Sockaddr, int, error) {
	bad := failure(s + " is no ADDRESS:PORT (an IPv6 address needs brackets; names are not looked up)")
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return nil, 0, bad
	}
	port, err := strconv.Atoi(s[i+1:])
	host := s[:i]
	if err != nil || port < 1 || port > 65535 {
		return nil, 0, bad
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		a, ok := parse6(host[1 : len(host)-1])
		if !ok {
			return nil, 0, bad
		}
		return &syscall.SockaddrInet6{Port: port, Addr: a}, syscall.AF_INET6, nil
	}
	a, ok := parse4(host)
	if !ok {
		return nil, 0, bad
	}
	return &syscall.SockaddrInet4{Port: port, Addr: a}, syscall.AF_INET, nil
}

func parse4(s string) (a [4]byte, ok bool) {
	f := strings.Split(s, ".")
	if len(f) != 4 {
		return a, false
	}
	for i, p := range f {
		v, err := strconv.ParseUint(p, 10, 8)
		if err != nil {
			return a, false
		}
		a[i] = byte(v)
	}
	return a, true
}

// parse6 reads groups of hexadecimal digits, "::" standing for the zeros left out.
func parse6(s string) (a [16]byte, ok bool) {
	left, right, gap := strings.Cut(s, "::")
	n, ok := groups6(left, a[:])
	if !gap {
		return a, ok && n == 16
	}
	var tail [16]byte
	m, ok2 := groups6(right, tail[:])
	if !ok || !ok2 || n+m > 14 {
		return a, false
	}
	copy(a[16-m:], tail[:m])
	return a, true
}

func groups6(s string, to []byte) (n int, ok bool) {
	if s == "" {
		return 0, true
	}
	for _, g := range strings.Split(s, ":") {
		v, err := strconv.ParseUint(g, 16, 16)
		if err != nil || n+2 > len(to) || len(g) > 4 {
			return 0, false
		}
		to[n], to[n+1] = byte(v>>8), byte(v)
		n += 2
	}
	return n, true
}
