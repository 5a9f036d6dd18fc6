#pragma once

#include <pthread.h>

namespace perfmap {

/// Puts pthread_cancel(3) off: write(2) would act on it, with a lock held, and as nothing here lets
/// the unwinding that it starts pass, the process would end. One that is asynchronous nobody can
/// use around locks.
class NoCancel {
 public:
  NoCancel() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { ::pthread_setcancelstate(before_, nullptr); }
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace perfmap
