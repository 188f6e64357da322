package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

const (
	usualWork = 5 * time.Second  // how long the work takes as a rule
	outage    = 10 * time.Second // nobody knows how long an outage lasts; ask again at this pace
)

// charge returns a handler that charges an invoice, one request at a time. patience is how long a
// request waits for an answer of the lock server.
func charge(l locker.Locker, patience time.Duration, work func(ctx context.Context, invoice string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		invoice := r.PathValue("id")
		// NoWait: another holder is answered at once. MaxWait bounds the wait for a silent server.
		req := locker.Request{Name: "invoice:" + invoice, NoWait: true, MaxWait: patience}
		var ran bool
		var failed error // the work's own error
		err := locker.Do(r.Context(), l, req, func(ctx context.Context, _ *locker.Lock) error {
			ran, failed = true, work(ctx, invoice)
			return failed
		})
		code := http.StatusInternalServerError
		if failed == nil {
			code = status(ran, err)
		}
		if code == http.StatusConflict || code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", seconds(retryAfter(err)))
		}
		w.WriteHeader(code)
	}
}

// status is the answer to the results of locker.Do, if the work itself did not fail.
func status(ran bool, err error) int {
	switch {
	case ran && errors.Is(err, locker.ErrLost):
		return http.StatusInternalServerError // the work may have run beside another's
	case ran:
		return http.StatusOK // if the release alone failed, the lock ends with its TTL
	case errors.Is(err, locker.ErrNested), errors.Is(err, locker.ErrInvalid), errors.Is(err, errors.ErrUnsupported):
		return http.StatusInternalServerError // a bug
	case errors.Is(err, locker.ErrNotAcquired):
		return http.StatusConflict // another holds the lock
	default:
		return http.StatusServiceUnavailable // an outage: no answer, or not from enough servers
	}
}

// retryAfter returns the time after which a request refused with err may be worth repeating. A
// lease bounds it only if nobody renews: a watchdog renews for as long as the work takes. So the
// usual time of the work bounds the answer.
func retryAfter(err error) time.Duration {
	held, contended := errors.AsType[*locker.ContentionError](err)
	switch {
	case !contended:
		return outage
	case held.Released:
		return held.Left // exact: MinHold keeps the name taken until then
	case held.Left > 0:
		return min(held.Left, usualWork)
	default:
		return usualWork // behind another request of this process, or behind a key without a TTL
	}
}

// seconds is d for the header Retry-After: whole seconds, rounded up, so that nobody comes early.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64(max((d+time.Second-1)/time.Second, 1)), 10)
}

// post sends a request for invoice 42 to the handler, and returns the status and Retry-After.
func post(handler http.Handler) string {
	mux := http.NewServeMux()
	mux.Handle("POST /invoices/{id}/charge", handler)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/invoices/42/charge", http.NoBody))
	if after, ok := w.Header()["Retry-After"]; ok {
		return fmt.Sprint(w.Code, " Retry-After: ", after[0])
	}
	return strconv.Itoa(w.Code)
}

// A request is answered with 409 if the lock is held, and with 503 if the lock server is down.
func Example_http() {
	b := connect()
	defer b.close()
	l := locker.Must(holdfast.New(b.driver, holdfast.Config{}))
	handler := charge(l, 10*time.Second, func(context.Context, string) error { return nil })

	fmt.Println("free:", post(handler))
	other := locker.Must(l.Acquire(context.Background(), locker.Request{Name: "invoice:42"}))
	fmt.Println("held by another:", post(handler))
	if err := other.Release(context.Background()); err != nil {
		panic(err)
	}
	b.server.Close()
	fmt.Println("server down:", post(handler))
	// Output:
	// free: 200
	// held by another: 409 Retry-After: 5
	// server down: 503 Retry-After: 10
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	hold := func(req locker.Request) func(*testing.T, *lockertest.Locker) {
		return func(_ *testing.T, locks *lockertest.Locker) {
			req.Name = "invoice:42"
			locks.Hold(req)
		}
	}
	const patience = time.Second
	done := func(context.Context, string) error { return nil }
	type test struct {
		given func(*testing.T, *lockertest.Locker)
		work  func(*lockertest.Locker) error
		want  string
		after time.Duration // how long the answer takes
	}
	check.EachInFakeTime(t, map[string]test{
		"free":                           {want: "200"},
		"the work fails":                 {work: func(*lockertest.Locker) error { return errors.New("no money") }, want: "500"},
		"held for long":                  {given: hold(locker.Request{TTL: time.Minute}), want: "409 Retry-After: 5"},
		"held for a few seconds":         {given: hold(locker.Request{TTL: 2500 * time.Millisecond}), want: "409 Retry-After: 3"},
		"held for whole seconds":         {given: hold(locker.Request{TTL: 2 * time.Second}), want: "409 Retry-After: 2"},
		"held for less than a second":    {given: hold(locker.Request{TTL: 10 * time.Millisecond}), want: "409 Retry-After: 1"},
		"kept taken for its minimum":     {given: released, want: "409 Retry-After: 30"},
		"the server is down":             {given: outageOf(lockertest.Refused), want: "503 Retry-After: 10"},
		"the server does not answer":     {given: outageOf(lockertest.Silent), want: "503 Retry-After: 10", after: patience},
		"the lock is lost":               {work: func(locks *lockertest.Locker) error { locks.Expire("invoice:42"); return nil }, want: "500"},
		"the release alone fails":        {work: func(locks *lockertest.Locker) error { locks.FailRelease(errors.New("reset")); return nil }, want: "200"},
		"the server goes down meanwhile": {work: func(locks *lockertest.Locker) error { locks.SetOutage(lockertest.Refused); return nil }, want: "200"},
	}, func(t *testing.T, tt test) {
		locks := lockertest.New()
		work := done
		if tt.work != nil {
			work = func(context.Context, string) error { return tt.work(locks) }
		}
		if tt.given != nil {
			tt.given(t, locks)
		}
		began := time.Now()
		check.Equal(t, "the answer", post(charge(locker.Must(holdfast.Wrap(locks, holdfast.Config{})), patience, work)), tt.want)
		check.Took(t, "the answer", began, tt.after)
		locks.SetOutage(lockertest.NoOutage)
	})
}

// released is a released hold with 30 s of its MinHold left.
func released(t *testing.T, locks *lockertest.Locker) {
	t.Helper()
	lock := locker.Must(locks.Acquire(t.Context(), locker.Request{Name: "invoice:42", TTL: time.Minute, MinHold: 30 * time.Second}))
	check.Must(t, lock.Release(t.Context()))
}

func outageOf(kind lockertest.Outage) func(*testing.T, *lockertest.Locker) {
	return func(_ *testing.T, locks *lockertest.Locker) { locks.SetOutage(kind) }
}

// A handler that waits, or calls itself.
func TestHTTPStatus(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err   error
		want  int
		after string
	}{
		"behind a request of this process": {&locker.ContentionError{}, http.StatusConflict, "5"},
		"the handler holds the lock":       {&locker.ContentionError{Nested: true}, http.StatusInternalServerError, "5"},
		"a wrong request":                  {locker.ErrInvalid, http.StatusInternalServerError, "10"},
		"no answer within MaxWait":         {locker.ErrMaxWait, http.StatusServiceUnavailable, "10"},
		"held for all of MaxWait":          {errors.Join(&locker.ContentionError{Left: time.Second}, locker.ErrMaxWait), http.StatusConflict, "1"},
	} {
		check.Equal(t, name+": status", status(false, tt.err), tt.want)
		check.Equal(t, name+": Retry-After", seconds(retryAfter(tt.err)), tt.after)
	}
}
