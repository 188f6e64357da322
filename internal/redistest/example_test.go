package redistest_test

import (
	"fmt"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Keys with the same hash tag share a slot.
func ExampleSlot() {
	fmt.Println(redistest.Slot("orders"), redistest.Slot("{orders}:fence"), redistest.Slot("orders:fence"))
	// Output: 105 105 3056
}
