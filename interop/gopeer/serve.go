package gopeer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Serve is the peer: args are the kind, the address and, for Holdfast, the prefix.
func Serve(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 {
		return fmt.Errorf("arguments %q: want kind, address and prefix", args)
	}
	l, err := open(args[0], args[1], args[2])
	if err != nil {
		return err
	}
	s := &server{library: l, client: redis.NewClient(&redis.Options{Addr: args[1]}), held: map[string]lock{}}
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	for line := range lines(in) {
		begin := time.Now()
		text, err := s.do(strings.Fields(line))
		end := time.Now()
		switch {
		case err == nil:
			text = strings.TrimSpace("ok " + text)
		case errors.Is(err, errNo):
			text = "no"
		default:
			text = "error " + strings.Join(strings.Fields(err.Error()), " ")
		}
		if _, err := fmt.Fprintln(out, begin.UnixMicro(), end.UnixMicro(), text); err != nil {
			return err
		}
	}
	return nil
}

// lines returns the lines of in. The process ends with its input, whatever it waits for.
func lines(in io.Reader) <-chan string {
	c := make(chan string)
	go func() {
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			c <- scanner.Text()
		}
		os.Exit(0)
	}()
	return c
}

type server struct {
	library
	client *redis.Client
	held   map[string]lock
}

func (s *server) do(words []string) (text string, err error) {
	words = append(words, "", "", "", "", "")
	verb, name, third, fourth := words[0], words[1], millis(words[2]), words[3]
	switch verb {
	case "acquire":
		held, err := s.acquire(name, third, millis(fourth), words[4])
		if err == nil {
			s.held[name] = held
		}
		return "", err
	case "renew":
		return "", s.held[name].renew(third)
	case "release":
		return "", s.held[name].release()
	case "hammer":
		return s.hammer(name, third, time.UnixMilli(millis(fourth).Milliseconds()), millis(words[4]))
	default:
		return "", errors.ErrUnsupported
	}
}

// millis parses milliseconds; "" is 0.
func millis(word string) time.Duration {
	n, _ := strconv.ParseInt(word, 10, 64) // the words are a test's
	return time.Duration(n) * time.Millisecond
}

// grace is how much longer than its time a hammer waits for a lock: the others end too.
const grace = time.Minute

// hammer makes cycles until a time, with a pause behind each. It counts them and the violations, and
// measures the longest wait.
func (s *server) hammer(name string, ttl time.Duration, until time.Time, pause time.Duration) (string, error) {
	ctx, inside := context.Background(), "inside:"+name
	cycles, violations, longest, begin := 0, 0, time.Duration(0), time.Now()
	for left := time.Until(until); left > 0; left = time.Until(until) {
		held, err := s.acquire(name, ttl, left+grace, "")
		longest = max(longest, time.Since(begin))
		if errors.Is(err, errNo) {
			continue
		}
		if err != nil {
			return "", err
		}
		n, err := s.client.Incr(ctx, inside).Result()
		if err != nil {
			return "", err
		}
		if n != 1 {
			violations++
		}
		cycles++
		if err := s.client.Decr(ctx, inside).Err(); err != nil {
			return "", err
		}
		if err := held.release(); err != nil {
			return "", err
		}
		time.Sleep(pause) //nolint:forbidigo // of the program whose share is measured
		begin = time.Now()
	}
	return fmt.Sprint(cycles, violations, longest.Milliseconds()), nil
}
