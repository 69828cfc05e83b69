package targets

import "strings"

// blurred are the decisive words that are looked for also where noise has taken
// or doubled some of their letters. They are long, so that no other text comes
// near them.
var blurred = [...]struct {
	stage string
	words pattern
}{
	{StageNoRoot, newPattern("Unable to mount root fs")},
	{StageNoInit, newPattern("No working init found")},
	{StagePanic, newPattern(panicWords)},
	{StageLockup, newPattern("BUG: soft lockup - CPU#")},
	{StageHungTask, newPattern("blocked for more than 120 seconds")},
	{StageRCU, newPattern("self-detected stall on CPU")},
	{StageRCU, newPattern("detected stalls on CPUs/tasks")},
	{StagePanic, newPattern("unrecognized/unsupported machine ID")},
	{StageRCU, newPattern("detected expedited stalls on CPUs")},
	{StageRCU, newPattern("INFO: RCU detected CPU")},
	{StageRCU, newPattern("kthread starved for")},
	{StageOops, newPattern("Unable to handle kernel")},
	{StageOops, newPattern("kernel NULL pointer dereference")},
	{StageOops, newPattern("unable to handle page fault for address")},
	{StageOops, newPattern("Unhandled kernel unaligned access")},
	{StageOops, newPattern("Reserved instruction in kernel code")},
	{StageUnpacked, newPattern("data is corrupt -- System halted")},
}

// blurredLoader are a boot loader's.
var blurredLoader = [...]struct {
	stage string
	words pattern
}{
	{StageRefused, newPattern("Wrong Image Format for bootm command")},
	{StageRefused, newPattern("ERROR: can't get kernel image!")},
	{StageRefused, newPattern("you need to load the kernel first")},
	{StageRefused, newPattern("Could not find kernel image")},
	{StageRefused, newPattern("Unknown executable format")},
	{StageRefused, newPattern("must RESET board to recover")},
	{StageLoader, newPattern("Please RESET the board")},
	{StageLoader, newPattern("Operating System not found")},
}

const panicWords = "Kernel panic - not syncing"

// Limits of words between whose letters another writer's stand.
const (
	maxGap  = 14 // letters of the other in a row
	maxSpan = 4  // times the length of the words
)

// pattern searches words of at most 63 letters with a few errors.
type pattern struct {
	words  string
	errors int
	masks  *[128]uint64 // bit i: the letter stands at place i
}

func newPattern(words string) pattern {
	p := pattern{words: words, errors: len(words) / 11, masks: new([128]uint64)}
	for i := range len(words) {
		p.masks[words[i]] |= 1 << i
	}
	return p
}

// in reports whether the words end behind text[from:] with at most p.errors
// letters lost, added or changed (Wu and Manber, "Fast Text Searching", 1992).
func (p pattern) in(text string, from int) bool {
	found := uint64(1) << (len(p.words) - 1)
	var r [8]uint64
	for d := range p.errors + 1 {
		r[d] = 1<<d - 1
	}
	for i := range len(text) {
		mask := uint64(0)
		if text[i] < 128 {
			mask = p.masks[text[i]]
		}
		was := r[0]
		r[0] = (r[0]<<1 | 1) & mask
		for d := 1; d <= p.errors; d++ {
			now := (r[d]<<1|1)&mask | was | was<<1 | r[d-1]<<1 | 1
			was, r[d] = r[d], now
		}
		if i >= from && r[p.errors]&found != 0 {
			return true
		}
	}
	return false
}

// spread reports whether the letters of words stand in text in order, with
// another writer's between them, and end behind text[from:].
func spread(text, words string, from int) bool {
	type place struct{ begin, end int }
	at := make([]place, len(words)+1) // of each number of letters, the latest
	for i := range at {
		at[i].end = -1 - maxGap
	}
	for i := range len(text) {
		for j := len(words); j > 0; j-- {
			if text[i] != words[j-1] {
				continue
			}
			if j == 1 {
				at[1] = place{i, i}
			} else if i-at[j-1].end <= maxGap+1 && at[j-1].end >= 0 && i-at[j-1].begin < maxSpan*len(words) {
				at[j] = place{at[j-1].begin, i}
			}
		}
		if i >= from && at[len(words)].end == i {
			return true
		}
	}
	return false
}

// noisySign finds decisive words that noise has hit: within line, or across the
// end of the line before it. A boot loader's count only while no kernel runs.
// cited says that they stand there in quotation marks.
func noisySign(before, line string, loader bool) (f finding, cited bool) {
	before, line = plain(before), plain(line)
	text, from := before+line, len(before)
	for _, b := range blurred {
		if !b.words.in(text, from) {
			continue
		}
		if !quoted(line, b.words.words) {
			return finding{stage: b.stage, rank: ranks(b.stage)}, false
		}
		cited = true
	}
	for _, b := range blurredLoader {
		if loader && b.words.in(text, from) {
			f = finding{stage: b.stage, rank: ranks(b.stage)}
			if f.stage == StageRefused {
				f.wait = refusedWait
			}
			return f, false
		}
	}
	if spread(text, panicWords, from) && !quoted(line, panicWords) {
		return finding{stage: StagePanic, rank: ranks(StagePanic),
			what: "crash suspected: the letters of \"" + panicWords + "\" stand between another writer's: " + strings.TrimSpace(text)}, false
	}
	return finding{}, cited
}

// alike says that one line is the other with a few letters lost or added; a
// changed one counts as both.
func alike(a, b string) bool {
	most := max(len(a), len(b))/40 + 1
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return false
	}
	row := make([]int, len(b)+1) // of the distances from a's begin
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		was := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := was
			if a[i] != b[j] {
				cost = 1 + min(row[j], row[j+1])
			}
			was, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)] <= most
}
