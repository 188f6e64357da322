package main

import "github.com/holdfast-go/holdfast/locker/driver"

// hint returns what to correct in the URL after err, or "" if that is not known.
func (o *options) hint(err error) string {
	all, credErr := o.credentials()
	if credErr != nil {
		return ""
	}
	return hint(err, all...)
}

func hint(err error, all ...credentials) string {
	if driver.CodeOf(err) == "MOVED" && all[0].kind == oneServer {
		return clusterAdvice
	}
	return ""
}
