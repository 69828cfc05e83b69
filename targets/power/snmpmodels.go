package power

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// outletPlan says what is set and read for one outlet.
type outletPlan struct {
	on, off           string // OIDs that are set
	onValue, offValue int
	state             string // OID that is read
	stateOn, stateOff int
}

// models are the strips known here; %s is the outlet. Beside each the MIB and the
// objects that say so.
func models() map[string]outletPlan {
	const ent = ".1.3.6.1.4.1."
	simple := func(oid string, on, off int) outletPlan { return outletPlan{oid, oid, on, off, oid, on, off} }
	return map[string]outletPlan{
		// PowerNet-MIB: sPDUOutletCtl, outletOn(1) outletOff(2).
		"apc-masterswitch": simple(ent+"318.1.1.4.4.2.1.3.%s", 1, 2),
		// PowerNet-MIB: rPDUOutletControlOutletCommand, rPDUOutletStatusOutletState.
		"apc-rpdu": {ent + "318.1.1.12.3.3.1.1.4.%s", ent + "318.1.1.12.3.3.1.1.4.%s", 1, 2, ent + "318.1.1.12.3.5.1.1.4.%s", 1, 2},
		// PowerNet-MIB: rPDU2OutletSwitchedControlCommand, rPDU2OutletSwitchedStatusState off(1) on(2).
		"apc-rpdu2": {ent + "318.1.1.26.9.2.4.1.5.%s", ent + "318.1.1.26.9.2.4.1.5.%s", 1, 2, ent + "318.1.1.26.9.2.3.1.5.%s", 2, 1},
		// CPS-MIB: ePDUOutletControlOutletCommand, ePDUOutletStatusOutletState.
		"cyberpower": {ent + "3808.1.1.3.3.3.1.1.4.%s", ent + "3808.1.1.3.3.3.1.1.4.%s", 1, 2, ent + "3808.1.1.3.3.5.1.1.4.%s", 1, 2},
		// EATON-EPDU-MIB: outletControlOnCmd, outletControlOffCmd (delay in seconds), outletControlStatus.
		"eaton": {ent + "534.6.6.7.6.6.1.4.%s", ent + "534.6.6.7.6.6.1.3.%s", 0, 0, ent + "534.6.6.7.6.6.1.2.%s", 1, 0},
		// GUDEADS-EPC822X-MIB: epc822XPortState.
		"gude-epc822x": simple(ent+"28507.38.1.3.1.2.1.3.%s", 1, 0),
		// NETIO-PRODUCTS-NETIO-MIB: netioOutputAction, netioOutputState.
		"netio": {ent + "47952.1.1.1.5.%s", ent + "47952.1.1.1.5.%s", 1, 0, ent + "47952.1.1.1.3.%s", 1, 0},
		// POWER-ETHERNET-MIB (RFC 3621): pethPsePortAdminEnable, true(1) false(2).
		"poe": simple(".1.3.6.1.2.1.105.1.1.1.3.%s", 1, 2),
		// PDU-MIB: outletOperationalState.
		"raritan-px1": simple(ent+"13742.4.1.2.2.1.3.%s", 1, 0),
		// PDU2-MIB: switchingOperation, outletSwitchingState on(7) off(8).
		"raritan-px2": {ent + "13742.6.4.1.2.1.2.%s", ent + "13742.6.4.1.2.1.2.%s", 1, 0, ent + "13742.6.4.1.2.1.3.%s", 7, 8},
		// Sentry3-MIB: outletControlAction, outletStatus off(0) on(1).
		"sentry": {ent + "1718.3.2.3.1.11.%s", ent + "1718.3.2.3.1.11.%s", 1, 2, ent + "1718.3.2.3.1.5.%s", 1, 0},
	}
}

// units are the indices that stand before the outlet's own: unit, or tower and
// infeed. Who writes the outlet alone means the first.
func units() map[string]string {
	return map[string]string{"eaton": "0.", "poe": "1.", "raritan-px2": "1.", "sentry": "1.1."}
}

// plan is the model's, or what the attributes say.
func (d *SNMP) plan() (outletPlan, error) {
	outlet := d.suffix()
	if d.Model == "" {
		return d.ownPlan(outlet)
	}
	if d.OID+d.On+d.Off+d.StateOID+d.StateOn+d.StateOff != "" {
		return outletPlan{}, errors.New("model says what oid, on, off and state say: give one or the others")
	}
	p, ok := models()[d.Model]
	if !ok {
		var names []string
		for n := range models() {
			names = append(names, n)
		}
		sort.Strings(names)
		return p, fmt.Errorf("model = %q is not known; there are %s; for another give oid, on and off", d.Model, strings.Join(names, ", "))
	}
	before := units()[d.Model]
	switch strings.Count(outlet, ".") {
	case 0:
		outlet = before + outlet
	case strings.Count(before, "."):
	default:
		return p, fmt.Errorf("outlet = %q: a %s has %d numbers before the outlet's", d.Socket, d.Model, strings.Count(before, "."))
	}
	for _, oid := range []*string{&p.on, &p.off, &p.state} {
		*oid = strings.Replace(*oid, "%s", outlet, 1)
	}
	return p, nil
}

// ownPlan takes the attributes.
func (d *SNMP) ownPlan(outlet string) (outletPlan, error) {
	if d.OID == "" || d.On == "" || d.Off == "" {
		return outletPlan{}, errors.New("without model it needs oid, on and off")
	}
	orElse := func(s, other string) string {
		if s == "" {
			return other
		}
		return s
	}
	p := outletPlan{on: fullOID(d.OID, outlet), off: fullOID(d.OID, outlet), state: fullOID(orElse(d.StateOID, d.OID), outlet)}
	for _, oid := range []string{p.on, p.state} {
		if !isOID(oid) {
			return p, fmt.Errorf("%q is no OID: want numbers joined by dots", oid)
		}
	}
	for _, v := range []struct {
		name, text string
		to         *int
	}{
		{"on", d.On, &p.onValue}, {"off", d.Off, &p.offValue},
		{"state_on", orElse(d.StateOn, d.On), &p.stateOn}, {"state_off", orElse(d.StateOff, d.Off), &p.stateOff},
	} {
		n, err := strconv.ParseInt(v.text, 10, 32)
		if err != nil {
			return p, fmt.Errorf("%s = %q: want an integer", v.name, v.text)
		}
		*v.to = int(n)
	}
	if p.onValue == p.offValue || p.stateOn == p.stateOff {
		return p, errors.New("on and off are the same")
	}
	return p, nil
}

func fullOID(oid, outlet string) string {
	if strings.Contains(oid, "%s") {
		oid = strings.Replace(oid, "%s", outlet, 1)
	} else {
		oid = strings.TrimSuffix(oid, ".") + "." + outlet
	}
	return "." + strings.TrimPrefix(oid, ".")
}

func isOID(oid string) bool {
	parts := strings.Split(strings.TrimPrefix(oid, "."), ".")
	return len(parts) > 2 && !slices.ContainsFunc(parts, func(p string) bool { return number(p) == "" })
}
