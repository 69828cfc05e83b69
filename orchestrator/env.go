package orchestrator

import (
	"context"
	"fmt"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
	"kernsweep/workloads/deploy"
)

// env gathers what the workload may use; done gives the peer back.
func (t *trial) env(ctx context.Context, deadline time.Duration) (e *workloads.Env, done func(), err error) {
	done = func() {}
	sample := t.scenario.Common.Sample
	e = &workloads.Env{
		Target: workloads.Side{Conn: t.target.Held, Agent: t.tracked(t.agent, t.conf.Name), Network: t.network()},
		Dir:    t.dir, Scale: t.conf.Scale, CPUs: t.record.CPUs, Deadline: deadline, Sample: sample, Tools: t.record.Tools,
		Made: t.agent.Keep,
	}
	if !t.scenario.Run.Needs().Peer {
		return e, done, nil
	}
	if name := t.peerTarget(); name != "" {
		e.Peer, done, err = t.peerSide(ctx, name)
		if err != nil {
			return e, done, fmt.Errorf("peer %s: %w", name, err)
		}
		e.Target.Network.Peer = e.Peer.Network.Address
		return e, done, nil
	}
	a, err := t.r.controllerAgent(ctx)
	if err != nil {
		return e, done, err
	}
	e.Peer = workloads.Side{Conn: t.r.Local, Agent: t.tracked(a, ""), Network: targets.Network{Address: e.Target.Network.Peer}}
	return e, done, nil
}

// peerSide reaches another target as a peer, whatever kernel it runs: its lock is
// held, so no lane boots or measures it meanwhile.
func (t *trial) peerSide(ctx context.Context, name string) (side workloads.Side, done func(), err error) {
	done = func() {}
	conf := t.r.Lab.Target(name)
	if conf == nil {
		return side, done, fmt.Errorf("no such target")
	}
	if targets.TraitsOf(conf.Boot).Local {
		return side, done, fmt.Errorf("it is a virtual target, which runs only inside its own lane: name a real one")
	}
	conn, err := t.r.Dial(ctx, conf.SSH, targets.DialOptions{Note: t.note(ctx)})
	if err != nil {
		return side, done, err
	}
	agent, err := deploy.Install(ctx, conn, deploy.Options{Arch: conf.Arch, Want: conf.Agent, Log: t.log, Note: t.note(ctx), Agents: t.r.kept.agents.Get,
		Spare: t.r.spare()})
	if err != nil {
		_ = conn.Close()
		return side, done, err
	}
	n := conf.Network
	if n.Address == "" {
		n.Address = conf.SSH.Host
	}
	done = func() {
		ctx, cancel := targets.Afterwards(ctx, cleanupTime/2)
		defer cancel()
		if err := agent.Remove(ctx); err != nil {
			t.note(ctx)(fmt.Sprintf("the agent's files on peer %s could not be removed: %v", name, err))
		}
		_ = conn.Close()
	}
	return workloads.Side{Conn: conn, Agent: t.tracked(agent, name), Network: n}, done, nil
}

// network is how the target is reached, with what the probe learnt filled in.
func (t *trial) network() targets.Network {
	n := t.target.Network
	if d, ok := t.target.Boot.(targets.Networker); ok {
		n = d.Network()
	}
	if n.Address == "" {
		n.Address = t.target.SSH.Host
	}
	if n.Peer == "" {
		n.Peer = t.record.ClientAddr
	}
	return n
}

// tracked is an agent on a machine that makes durable where its spools are
// before anything begins. In a resumed trial it begins nothing and brings what
// was begun.
func (t *trial) tracked(a *deploy.Agent, machine string) workloads.Agent {
	if t.resumed != nil {
		var begun []deploy.Spooled
		for _, x := range t.resumed {
			if x.Machine == machine {
				begun = append(begun, deploy.Spooled{File: x.Spool, Prefix: x.Prefix})
			}
		}
		return a.Resuming(begun)
	}
	return a.Tracked(func(s deploy.Spooled) error {
		return t.r.append(context.Background(), results.Record{Lane: t.conf.Name, Kind: results.KindTask, Slot: &t.slot, Attempt: t.attempt,
			Task: &results.Task{Machine: machine, BootID: t.record.BootID, Spool: s.File, Prefix: s.Prefix}})
	})
}
