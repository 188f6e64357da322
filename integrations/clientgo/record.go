package clientgo

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/holdfast-go/holdfast/locker"
)

// unknownHolder is the identity of a holder without an owner, such as another library.
const unknownHolder = "(unknown)"

// recordOf returns the record of a held lock, for a candidate without a hold.
//
// A LeaderElector attempts nothing while a record has the identity of another and changes again and
// again, and takes a record with its own identity for its own leadership. If the hold is an earlier
// one of this candidate (of its process before a restart, or of an acquire being undone), the
// identity is therefore empty: anyone may try, and the strategy decides.
func recordOf(state locker.State, identity string, now time.Time) resourcelock.LeaderElectionRecord {
	holder := state.Owner
	switch holder {
	case "":
		holder = unknownHolder
	case identity:
		holder = ""
	}
	return resourcelock.LeaderElectionRecord{
		HolderIdentity:       holder,
		LeaseDurationSeconds: max(1, int((state.Left+time.Second-1)/time.Second)),
		RenewTime:            metav1.NewTime(now),
	}
}

// raw returns the distinguishing part of a record. The time in a record of another candidate is
// that of asking: the server is asked each time, and it decides when a lease has ended.
func raw(record resourcelock.LeaderElectionRecord) []byte {
	return record.RenewTime.AppendFormat([]byte(record.HolderIdentity+" "), time.RFC3339Nano)
}

// statusError is err with its reason for k8s.io/apimachinery/pkg/api/errors.
type statusError struct {
	error
	reason metav1.StatusReason
}

// Status implements apierrors.APIStatus.
func (e *statusError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Reason: e.reason, Message: e.Error()}
}

func (e *statusError) Unwrap() error { return e.error }
