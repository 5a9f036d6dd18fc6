// A program with return addresses that follow no call: `step` returns to the first byte of
// `continuation`, which is never called, like code of the compilers of Haskell and Erlang. Its
// frames have frame pointers and call frame information. continuations MILLISECONDS
#include <cstdlib>
#include <ctime>

extern "C" void run_steps();

asm(R"(
        .text
        .globl  run_steps, step, decoy, continuation
        .type   step, @function
step:
        .cfi_startproc
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        mov     $200000, %ecx
1:      imul    $31, %rax, %rax
        dec     %ecx
        jnz     1b
        pop     %rbp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   step, . - step

        .type   run_steps, @function
run_steps:
        .cfi_startproc
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        sub     $16, %rsp
        lea     continuation(%rip), %rax
        push    %rax
        jmp     step
        .cfi_endproc
        .size   run_steps, . - run_steps

        .type   decoy, @function
decoy:
        ret
        .quad   0, 0
        .size   decoy, . - decoy
        .type   continuation, @function
continuation:
        .cfi_startproc
        .cfi_def_cfa %rbp, 16
        .cfi_offset %rbp, -16
        mov     $1000, %ecx
1:      imul    $37, %rax, %rax
        dec     %ecx
        jnz     1b
        mov     %rbp, %rsp
        pop     %rbp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   continuation, . - continuation
)");

int main(int argc, char** argv) {
  const long milliseconds = argc > 1 ? std::atol(argv[1]) : 1000;
  timespec begin{}, now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  do {
    run_steps();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 <
           milliseconds);
}
