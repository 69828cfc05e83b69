package qemu

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// forwardTries bounds the search for a port that is free for TCP and UDP.
const forwardTries = 20

// forward lets QEMU listen on 127.0.0.1 for each guest port, TCP and UDP under
// one number. QEMU binds, and the kernel picks, so no port is lost between a
// look and its use. Ports of the boot before are asked for first.
func forward(ctx context.Context, q *qmp, guest []int, old map[int]int) (map[int]int, error) {
	ports := make(map[int]int, len(guest))
	for _, g := range guest {
		host, err := forwardOne(ctx, q, g, old[g])
		if err != nil {
			return nil, fmt.Errorf("forward a port of 127.0.0.1 to the guest's port %d: %w", g, err)
		}
		ports[g] = host
	}
	return ports, nil
}

func forwardOne(ctx context.Context, q *qmp, guest, wanted int) (int, error) {
	var last error
	for range forwardTries {
		said, err := q.human(ctx, fmt.Sprintf("hostfwd_add net0 tcp:127.0.0.1:%d-:%d", wanted, guest))
		if err != nil {
			return 0, err
		}
		wanted = 0
		if said = strings.TrimSpace(said); said != "" {
			last = errors.New(said)
			continue
		}
		host, err := forwarded(ctx, q, guest)
		if err != nil {
			return 0, err
		}
		said, err = q.human(ctx, fmt.Sprintf("hostfwd_add net0 udp:127.0.0.1:%d-:%d", host, guest))
		if err != nil || strings.TrimSpace(said) == "" {
			return host, err
		}
		last = errors.New(strings.TrimSpace(said))
		if _, err := q.human(ctx, fmt.Sprintf("hostfwd_remove net0 tcp:127.0.0.1:%d", host)); err != nil {
			return 0, err
		}
	}
	return 0, last
}

// forwarded looks up which TCP port leads to a guest port. Its lines look like
// "TCP[HOST_FORWARD]  12  127.0.0.1 43605  10.0.2.15  22  0  0".
func forwarded(ctx context.Context, q *qmp, guest int) (int, error) {
	table, err := q.human(ctx, "info usernet")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 6 || f[0] != "TCP[HOST_FORWARD]" || f[5] != strconv.Itoa(guest) {
			continue
		}
		if host, err := strconv.Atoi(f[3]); err == nil && host > 0 && host < 65536 {
			return host, nil
		}
	}
	return 0, fmt.Errorf("QEMU's table of forwards lacks it: %.200q", table)
}
