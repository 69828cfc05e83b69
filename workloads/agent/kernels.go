package agent

// Limits of a float program's memory in kB. The default of 512 leaves room for
// three of them on a router with 16 MB.
const (
	minKB = 64
	maxKB = 1 << 20
)

// kernel is a float program. One unit of it takes about 1 ms on a core of 1 GHz
// with a floating-point unit and the default size. Products are converted
// explicitly, which forbids fused multiply-add: results are the same bits on
// every architecture, softfloat included.
type kernel interface {
	// unit does one unit of work and returns its result.
	unit() float64
	// period is the number of units after which results repeat.
	period() int64
}

func kernelNames() []string { return []string{"LTMM", "LTMB", "LTBM"} }

func newKernel(name string, kb int) kernel {
	switch name {
	case "LTMM":
		return newBlocks()
	case "LTMB":
		return newTriad(kb)
	case "LTBM":
		return newChase(kb)
	}
	return nil
}

// blocks is LTMM: products of 24x24 matrices, 14 kB in all. It lives in the
// first-level cache and is bound by arithmetic.
type blocks struct{ a, b, c [blockN * blockN]float64 }

const (
	blockN    = 24
	blockReps = 48 // products in a unit: 1.3 million floating-point operations
)

func newBlocks() *blocks {
	var k blocks
	for i := range k.a {
		k.a[i] = float64(i%13)*0.25 - 1.5
		k.b[i] = float64(i%17)*0.125 - 1
	}
	return &k
}

func (k *blocks) period() int64 { return 1 }

func (k *blocks) unit() float64 {
	k.c = [blockN * blockN]float64{}
	for range blockReps {
		for i := range blockN {
			c := k.c[i*blockN : (i+1)*blockN]
			for m := range blockN {
				x := k.a[i*blockN+m]
				b := k.b[m*blockN : (m+1)*blockN]
				for n := range c {
					c[n] = float64(c[n]*0.5) + float64(x*b[n])
				}
			}
		}
	}
	var sum float64
	for _, v := range k.c {
		sum += v
	}
	return sum
}

// triad is LTMB: z = x + s*y over three long arrays, one after another. It is
// bound by the bandwidth of the memory that its size falls into.
type triad struct {
	x, y, z []float64
	at      int
}

const triadUnit = 1 << 19 // elements in a unit: 12 MB of traffic

func newTriad(kb int) *triad {
	n := powerBelow(kb * 1024 / 24)
	k := &triad{x: make([]float64, n), y: make([]float64, n), z: make([]float64, n)}
	for i := range n {
		k.x[i] = float64(i&1023) * 0.03125
		k.y[i] = float64(i&255)*0.5 - 64
	}
	return k
}

func (k *triad) period() int64 { return int64(max(1, len(k.x)/triadUnit)) }

func (k *triad) unit() float64 {
	var sum float64
	for range triadUnit / min(triadUnit, len(k.x)) {
		n := min(triadUnit, len(k.x))
		x, y, z := k.x[k.at:k.at+n], k.y[k.at:k.at+n], k.z[k.at:k.at+n]
		for i := 0; i+3 < len(x) && i+3 < len(y) && i+3 < len(z); i += 4 {
			a := x[i] + float64(3.25*y[i])
			b := x[i+1] + float64(3.25*y[i+1])
			c := x[i+2] + float64(3.25*y[i+2])
			d := x[i+3] + float64(3.25*y[i+3])
			z[i], z[i+1], z[i+2], z[i+3] = a, b, c, d
			sum += (a + b) + (c + d)
		}
		k.at = (k.at + n) % len(k.x)
	}
	return sum
}

// chase is LTBM: a walk through all rows of a sparse matrix, where each row
// names the next one, in random order. It is bound by the latency of the memory
// that its size falls into.
type chase struct {
	next []uint32
	row  []float64
	at   uint32
}

const chaseUnit = 1 << 16 // steps in a unit

func newChase(kb int) *chase {
	n := powerBelow(kb * 1024 / 12)
	k := &chase{next: make([]uint32, n), row: make([]float64, n)}
	for i := range n {
		k.next[i] = uint32(i)
		k.row[i] = float64(i&511)*0.0625 - 16
	}
	rnd := randomizer(20070507)
	for i := n - 1; i > 0; i-- { // Sattolo's shuffle makes one single cycle
		j := int(rnd.next() % uint32(i))
		k.next[i], k.next[j] = k.next[j], k.next[i]
	}
	return k
}

func (k *chase) period() int64 { return int64(max(1, len(k.next)/chaseUnit)) }

func (k *chase) unit() float64 {
	at, acc, sum := k.at, 0.0, 0.0
	next, row := k.next, k.row[:len(k.next)]
	for range chaseUnit {
		at = next[at]
		acc = float64(acc*0.5) + row[at]
		sum += acc
	}
	k.at = at
	return sum
}

// powerBelow is the largest power of two up to n.
func powerBelow(n int) int {
	p := 1
	for p*2 <= n {
		p *= 2
	}
	return p
}

// randomizer is a xorshift generator: the same numbers everywhere.
type randomizer uint32

func (r *randomizer) next() uint32 {
	x := uint32(*r)
	x ^= x << 13
	x ^= x >> 17
	x ^= x << 5
	*r = randomizer(x)
	return x
}
