package orchestrator

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/leases"
	"kernsweep/targets"
)

const (
	lookUpTime = 3 * time.Second // for the addresses of a name
	lookUpMost = 16              // targets whose names are looked up at once
	addrsMost  = 8               // addresses of one name that are leased
)

// addresses finds out which device a target is.
type addresses struct {
	resolve func(context.Context, targets.SSH) ([]string, error) // nil: settings as they stand
	say     func(string)
}

// wants are the leases of targets: keyed by where they are, so that two
// configurations which name one device differently exclude each other. Two targets
// of one plan that are one device are an error.
func (a addresses) wants(ctx context.Context, list []*config.Target) ([]leases.Want, error) {
	keys := make([][]string, len(list))
	var wg sync.WaitGroup
	room := make(chan struct{}, lookUpMost)
	for i, t := range list {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			keys[i] = a.keys(ctx, t)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var wants []leases.Want
	owner := map[string]string{}
	for i, t := range list {
		for _, k := range keys[i] {
			if first, ok := owner[k]; ok {
				return nil, fmt.Errorf("targets %s and %s are the same machine: both lead to %s; leave one of them out, or correct its ssh block (%s)",
					first, t.Name, strings.TrimPrefix(k, targetLock("")), t.Pos)
			}
			owner[k] = t.Name
			wants = append(wants, leases.Want{Key: k, What: whatTarget(t.Name)})
		}
	}
	return wants, nil
}

// keys are all names under which a target is leased.
func (a addresses) keys(ctx context.Context, t *config.Target) []string {
	if t.SSH.Host == "" {
		controller, err := os.Hostname()
		if err != nil {
			controller = "this controller"
		}
		return []string{targetLock("named " + t.Name + " at " + controller)}
	}
	way := wayOf(t.SSH)
	if a.resolve != nil {
		w, err := a.resolve(ctx, t.SSH)
		if err == nil && len(w) > 0 {
			way = w
		} else if ctx.Err() == nil {
			a.say(fmt.Sprintf("target %s is leased by the address in its ssh block alone: %v", t.Name, err))
		}
	}
	// Only the first machine is looked up here: what a name behind a jump host means,
	// and whose 192.168.1.1 is meant, the jump host decides.
	var keys []string
	for _, first := range a.alike(ctx, t.Name, way[0]) {
		keys = append(keys, targetLock(strings.Join(append([]string{first}, way[1:]...), " > ")))
	}
	return keys
}

// wayOf is what an ssh block says itself.
func wayOf(s targets.SSH) []string {
	var way []string
	for _, hop := range s.Via {
		hop = hop[strings.LastIndexByte(hop, '@')+1:]
		if _, _, err := net.SplitHostPort(hop); err != nil {
			hop = net.JoinHostPort(strings.Trim(hop, "[]"), "22")
		}
		way = append(way, hop)
	}
	port := s.Port
	if port == 0 {
		port = 22
	}
	return append(way, net.JoinHostPort(s.Host, strconv.Itoa(port)))
}

// alike are the spellings of a machine's host and port: as it is named, and by
// each of its addresses.
func (a addresses) alike(ctx context.Context, target, hostPort string) []string {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return []string{hostPort} // a proxy command
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		return []string{net.JoinHostPort(ip.Unmap().String(), port)}
	}
	out := []string{net.JoinHostPort(host, port)}
	ctx, stop := context.WithTimeout(ctx, lookUpTime)
	defer stop()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		a.say(fmt.Sprintf("target %s is leased by the name %s alone, its address is not known: %v", target, host, err))
	}
	var found []string
	for _, ip := range ips {
		found = append(found, net.JoinHostPort(ip.Unmap().String(), port))
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return append(out, found[:min(len(found), addrsMost)]...)
}
