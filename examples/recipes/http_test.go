package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
)

// charge returns a handler that charges an invoice, which must happen once at a time.
func charge(l locker.Locker, work func(ctx context.Context, invoice string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		invoice := r.PathValue("id")
		req := locker.Request{Name: "invoice:" + invoice} // with MaxWait it would wait that long for another
		var failed error                                  // the work's own error
		ran, err := locker.Try(r.Context(), l, req, func(ctx context.Context, _ *locker.Lock) error {
			failed = work(ctx, invoice)
			return failed
		})
		code := http.StatusInternalServerError
		if failed == nil {
			code = status(ran, err)
		}
		if code == http.StatusConflict || code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(code)
	}
}

// status is the answer for what locker.Try returned, if the work itself did not fail.
func status(ran bool, err error) int {
	switch {
	case ran && err == nil:
		return http.StatusOK
	case ran && errors.Is(err, locker.ErrLost):
		return http.StatusInternalServerError // the work may have run beside another's
	case ran:
		return http.StatusOK // the release alone failed: the lock ends with its TTL
	case err == nil, errors.Is(err, locker.ErrNotAcquired):
		return http.StatusConflict // another holds the lock
	case errors.Is(err, locker.ErrInvalid), errors.Is(err, errors.ErrUnsupported):
		return http.StatusInternalServerError // a bug
	default:
		return http.StatusServiceUnavailable // an outage: no answer, or not from enough servers
	}
}

// A request for a lock that is held is answered with 409, and with 503 if the lock server is down.
func Example_http409Or503() {
	b := connect()
	defer b.close()
	l := locker.Must(holdfast.New(b.driver, holdfast.Config{}))
	mux := http.NewServeMux()
	mux.Handle("POST /invoices/{id}/charge", charge(l, func(context.Context, string) error { return nil }))
	post := func() int {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/invoices/42/charge", http.NoBody)
		mux.ServeHTTP(w, r)
		return w.Code
	}

	fmt.Println("free:", post())
	other, err := l.Acquire(context.Background(), locker.Request{Name: "invoice:42"})
	if err != nil {
		panic(err)
	}
	fmt.Println("held by another:", post())
	if err := other.Release(context.Background()); err != nil {
		panic(err)
	}
	b.server.Close()
	fmt.Println("server down:", post())
	// Output:
	// free: 200
	// held by another: 409
	// server down: 503
}
