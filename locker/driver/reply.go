package driver

import "fmt"

type kind uint8

const (
	kindNil kind = iota
	kindInt
	kindText
)

func (k kind) String() string { return [...]string{"nil", "an integer", "a string"}[k] }

type item struct {
	kind kind
	n    int64
	s    string
}

// Reply is the reply of a script: nil, an integer, a string, or a flat list of them. It has the
// same form from every client. The zero Reply is nil. A single value counts as a list of one.
type Reply struct {
	one  item
	list []item
	many bool
}

// NewReply returns a Reply with a client's decoded value: nil, int64, int, string, []byte, or a
// []any of these. Any other value, also a nested list, is an error.
func NewReply(v any) (Reply, error) {
	list, ok := v.([]any)
	if !ok {
		one, err := newItem(v)
		return Reply{one: one}, err
	}
	r := Reply{many: true, list: make([]item, len(list))}
	for i, e := range list {
		it, err := newItem(e)
		if err != nil {
			return Reply{}, fmt.Errorf("item %d: %w", i, err)
		}
		r.list[i] = it
	}
	return r, nil
}

func newItem(v any) (item, error) {
	switch v := v.(type) {
	case nil:
		return item{}, nil
	case int64:
		return item{kind: kindInt, n: v}, nil
	case int:
		return item{kind: kindInt, n: int64(v)}, nil
	case string:
		return item{kind: kindText, s: v}, nil
	case []byte:
		return item{kind: kindText, s: string(v)}, nil
	default:
		return item{}, fmt.Errorf("driver: reply of type %T: want nil, int64, string, or a flat list of them", v)
	}
}

// Len returns the number of values: one unless the reply is a list.
func (r Reply) Len() int {
	if r.many {
		return len(r.list)
	}
	return 1
}

// Part returns the n values from value i on, as a list. It is an error if there are fewer.
func (r Reply) Part(i, n int) (Reply, error) {
	if i < 0 || n < 0 || n > r.Len()-i {
		return Reply{}, fmt.Errorf("driver: reply has %d values, no %d from value %d on", r.Len(), n, i)
	}
	if !r.many {
		r.list = []item{r.one}
	}
	return Reply{many: true, list: r.list[i : i+n : i+n]}, nil
}

// Int returns value i. It is an error if there is no such value, or it is not an integer.
func (r Reply) Int(i int) (int64, error) {
	it, err := r.at(i, kindInt)
	return it.n, err
}

// Text returns value i. It is an error if there is no such value, or it is not a string.
func (r Reply) Text(i int) (string, error) {
	it, err := r.at(i, kindText)
	return it.s, err
}

// IsNil reports whether there is a value i and it is nil.
func (r Reply) IsNil(i int) bool {
	_, err := r.at(i, kindNil)
	return err == nil
}

func (r Reply) at(i int, want kind) (item, error) {
	if i < 0 || i >= r.Len() {
		return item{}, fmt.Errorf("driver: reply has %d values, no value %d", r.Len(), i)
	}
	it := r.one
	if r.many {
		it = r.list[i]
	}
	if it.kind != want {
		return item{}, fmt.Errorf("driver: reply value %d is %v, not %v", i, it.kind, want)
	}
	return it, nil
}
