package scale

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"
)

// entry is a member of a sorted set.
type entry struct {
	score  float64
	member string
}

func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.member, b.member))
}

// sortedSet is a sorted set as a list of short sorted chunks: with 100,000 members each operation
// touches some hundred entries.
type sortedSet struct {
	scores map[string]float64
	chunks [][]entry // none is empty
}

const chunkLen = 512

// chunkOf returns the index of e's chunk.
func (z *sortedSet) chunkOf(e entry) int {
	i, found := slices.BinarySearchFunc(z.chunks, e, func(c []entry, e entry) int { return compareEntries(c[0], e) })
	if !found && i > 0 {
		i--
	}
	return i
}

func (z *sortedSet) add(e entry) (added bool) {
	added = !z.remove(e.member)
	if z.scores == nil {
		z.scores = map[string]float64{}
	}
	z.scores[e.member] = e.score
	if len(z.chunks) == 0 {
		z.chunks = [][]entry{{e}}
		return added
	}
	i := z.chunkOf(e)
	at, _ := slices.BinarySearchFunc(z.chunks[i], e, compareEntries)
	z.chunks[i] = slices.Insert(z.chunks[i], at, e)
	if c := z.chunks[i]; len(c) > chunkLen {
		z.chunks[i] = slices.Clone(c[:chunkLen/2])
		z.chunks = slices.Insert(z.chunks, i+1, slices.Clone(c[chunkLen/2:]))
	}
	return added
}

func (z *sortedSet) remove(member string) bool {
	score, found := z.scores[member]
	if !found {
		return false
	}
	delete(z.scores, member)
	e := entry{score, member}
	i := z.chunkOf(e)
	at, _ := slices.BinarySearchFunc(z.chunks[i], e, compareEntries)
	if z.chunks[i] = slices.Delete(z.chunks[i], at, at+1); len(z.chunks[i]) == 0 {
		z.chunks = slices.Delete(z.chunks, i, i+1)
	}
	return true
}

// before returns how many members are before e.
func (z *sortedSet) before(e entry) (n int) {
	if len(z.chunks) == 0 {
		return 0
	}
	i := z.chunkOf(e)
	for _, c := range z.chunks[:i] {
		n += len(c)
	}
	at, _ := slices.BinarySearchFunc(z.chunks[i], e, compareEntries)
	return n + at
}

// from returns a list of the member at index n, or of none.
func (z *sortedSet) from(n int) []entry {
	for _, c := range z.chunks {
		if n < len(c) {
			return c[n : n+1]
		}
		n -= len(c)
	}
	return nil
}

// value is the content of a key: a string, or a sorted set.
type value struct {
	text    string
	set     *sortedSet
	expires time.Time // zero: never
}

// store is a Redis server's data. The bubble's clock is its clock.
type store struct {
	keys    map[string]*value
	publish func(channel string) (heard int)
}

// find returns the value of a key; nil if there is none, or it has expired.
func (s *store) find(key string) *value {
	v := s.keys[key]
	if v != nil && !v.expires.IsZero() && !time.Now().Before(v.expires) {
		delete(s.keys, key)
		return nil
	}
	return v
}

// command executes the Redis commands of the scripts. The reply is nil, an int, a string or a []any
// of strings.
func (s *store) command(args []string) any {
	number := func(i int) int {
		n, err := strconv.Atoi(args[i])
		if err != nil {
			panic(err)
		}
		return n
	}
	if args[0] == "TIME" {
		now := time.Now()
		return []any{strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond() / 1000)}
	}
	if args[0] == "PUBLISH" {
		return s.publish(args[1])
	}
	key := args[1]
	v := s.find(key)
	set := &sortedSet{}
	if v != nil && v.set != nil {
		set = v.set
	}
	switch args[0] {
	case "GETRANGE":
		if v == nil {
			return ""
		}
		return v.text[:min(len(v.text), number(3)+1)]
	case "SET":
		if args[len(args)-1] == "NX" && v != nil {
			return nil
		}
		s.keys[key] = &value{text: args[2], expires: time.Now().Add(time.Duration(number(4)) * time.Millisecond)}
		return "OK"
	case "DEL":
		delete(s.keys, key)
		return 1
	case "PTTL":
		switch {
		case v == nil:
			return -2
		case v.expires.IsZero():
			return -1
		}
		return int(time.Until(v.expires).Round(time.Millisecond).Milliseconds())
	case "PEXPIRE":
		v.expires = time.Now().Add(time.Duration(number(2)) * time.Millisecond)
		return 1
	case "ZADD":
		if args[2] == "XX" { // for the error alone: the member is never there
			return 0
		}
		if v == nil {
			s.keys[key] = &value{set: set}
		}
		added := 0
		for i := 2; i < len(args); i += 2 {
			score, err := strconv.ParseFloat(args[i], 64)
			if err != nil {
				panic(err)
			}
			if set.add(entry{score, args[i+1]}) {
				added++
			}
		}
		return added
	case "ZREM":
		removed := 0
		for _, member := range args[2:] {
			if set.remove(member) {
				removed++
			}
		}
		if v != nil && len(set.scores) == 0 {
			delete(s.keys, key)
		}
		return removed
	case "ZCOUNT": // from -inf
		most, err := strconv.ParseFloat(args[3], 64)
		if err != nil {
			panic(err)
		}
		return set.before(entry{math.Nextafter(most, math.Inf(1)), ""})
	case "ZRANGE": // of one index
		reply := []any{}
		for _, e := range set.from(number(2)) {
			reply = append(reply, e.member, strconv.FormatFloat(e.score, 'f', -1, 64))
		}
		return reply[:min(len(reply), len(args)-3)]
	case "ZSCORE":
		if score, found := set.scores[args[2]]; found {
			return strconv.FormatFloat(score, 'f', -1, 64)
		}
		return nil
	case "ZRANK":
		return set.before(entry{set.scores[args[2]], args[2]})
	}
	panic("the simulated server has no " + args[0])
}
