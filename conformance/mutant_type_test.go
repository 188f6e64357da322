package conformance

import "testing"

// The mutants are the default strategies with other lines in their scripts.
func TestMutantsOfForeignData(t *testing.T) {
	t.Parallel()
	var suspects []suspect
	for _, m := range []struct {
		name          string
		sound, flawed string
		caught        string
	}{
		{
			"a key of another type taken for a holder",
			" and string.sub(text.err, 1, 9) ~= 'WRONGTYPE' then\n    text = redis.pcall('GET', key) or ''",
			" then\n    text = '?'",
			"a key of another type is an error",
		},
		{
			"a release that deletes what it cannot read",
			"  return held\nend\nif leaves and KEYS[2] then",
			"  return redis.call('DEL', KEYS[1])\nend\nif leaves and KEYS[2] then",
			"a key that changed its type is a lost lock",
		},
		{
			"a counter without a number that counts as none",
			"return nil, 'no number'", "last = nil",
			"a fence key without a number is an error",
		},
		{
			"a renewal of whatever is in place of the counter",
			"if type(counter) == 'string' and string.match(counter, '^%d+$') and #counter <= 16\n      and", "if key and",
			"a fence key that changed its type is left alone",
		},
	} {
		flawed, sound := scriptsWith(t, m.sound, m.flawed), scriptsWith(t, "", "")
		suspects = append(suspects, suspect{m.name, flawed, sound, []string{m.caught}})
	}
	convict(t, suspects)
}
