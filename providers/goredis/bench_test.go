package goredis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var compareAndDelete = driver.NewScript(
	`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)

// cycles are the ways to one uncontended acquire and release: SET NX PX, then a compare-and-delete
// script. Client is go-redis alone; the others are the driver, under a context as strategies make
// it for a caller whose own cannot end (Bounded) or can be canceled, over a client with its
// defaults or one with ContextTimeoutEnabled (Obeys).
func cycles(b *testing.B) map[string]func(key string) error {
	const token = "0123456789abcdef0123456789abcdef"
	server := redistest.Start(b, redistest.Options{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	obeying := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	cancelable, cancel := context.WithCancel(b.Context())
	b.Cleanup(cancel)
	through := func(drv driver.Driver, parent context.Context) func(string) error {
		return func(key string) error {
			//realtime:ok a benchmark
			acquiring := driver.Bound(parent, 3*time.Second)
			defer acquiring.Stop()
			if set, err := drv.SetNX(acquiring, key, token, 30*time.Second); !set || err != nil {
				return fmt.Errorf("SetNX = %v, %w", set, err)
			}
			//realtime:ok a benchmark
			releasing := driver.Bound(parent, 3*time.Second)
			defer releasing.Stop()
			_, err := drv.Eval(releasing, compareAndDelete, []string{key}, []string{token})
			return err
		}
	}
	byDefault, obeys := newDriver(b, client), newDriver(b, obeying)
	if err := through(byDefault, b.Context())("warm up"); err != nil { // the server knows the script from here on
		b.Fatal(err)
	}
	return map[string]func(key string) error{
		"Client": func(key string) error {
			if set, err := client.SetNX(context.Background(), key, token, 30*time.Second).Result(); !set || err != nil {
				return fmt.Errorf("SetNX = %v, %w", set, err)
			}
			return client.EvalSha(context.Background(), compareAndDelete.Digest(), []string{key}, token).Err()
		},
		"Bounded":         through(byDefault, context.Background()),
		"BoundedObeys":    through(obeys, context.Background()),
		"Cancelable":      through(byDefault, cancelable),
		"CancelableObeys": through(obeys, cancelable),
	}
}

func BenchmarkCycle(b *testing.B) {
	for name, cycle := range cycles(b) {
		for _, goroutines := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", name, goroutines), func(b *testing.B) {
				b.ReportAllocs()
				if goroutines == 1 {
					for b.Loop() {
						if err := cycle("key"); err != nil {
							b.Fatal(err)
						}
					}
					return
				}
				var n atomic.Int64
				b.SetParallelism(max(1, goroutines/runtime.GOMAXPROCS(0)))
				b.RunParallel(func(pb *testing.PB) {
					key := "key" + strconv.FormatInt(n.Add(1), 10)
					for pb.Next() {
						if err := cycle(key); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

// BenchmarkRatio runs all cycles in turn, in random order, and reports the median of each as a
// multiple of the bare client's: on a noisy machine that says more than two times measured minutes
// apart.
func BenchmarkRatio(b *testing.B) {
	all := cycles(b)
	took := map[string][]time.Duration{}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	for b.Loop() {
		rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			started := time.Now()
			if err := all[name]("key"); err != nil {
				b.Fatal(err)
			}
			took[name] = append(took[name], time.Since(started))
		}
	}
	median := func(name string) float64 {
		slices.Sort(took[name])
		return float64(took[name][len(took[name])/2])
	}
	for name := range all {
		if name != "Client" {
			b.ReportMetric(median(name)/median("Client"), name+"/Client")
		}
	}
}
